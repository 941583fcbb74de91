"""DROP: bags of spans, aligned and compared."""
