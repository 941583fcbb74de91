"""Language models behind OpenAI-compatible endpoints, for proxies, readers and judges."""
