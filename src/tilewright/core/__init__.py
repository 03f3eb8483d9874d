"""The IR itself: types, expressions, statements, functions, and the record every op is."""
