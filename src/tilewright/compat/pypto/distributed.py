"""`pypto.language.distributed`: importable, so that programs which only name it are read; it has no names yet."""
