"""Other packages' names: what their users import, answered by ours."""
