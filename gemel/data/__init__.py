"""Reading and writing: files of texts in, files of vectors out."""
