"""The cache: lists and watches into stores of slim records, and which of our own writes they have yet to show."""
