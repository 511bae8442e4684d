"""The figures of scripts/figure: each is one module below and one line in registry.LISTED."""
