"""The one room where training and evaluation meet."""
