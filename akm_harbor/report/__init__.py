"""From results to something to look at: figures, offline HTML, notebooks, verdicts."""
