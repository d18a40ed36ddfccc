"""What a study of memory arms shows: accuracy with honest intervals, cost, retrieval, variance, protocols."""
