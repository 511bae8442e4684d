"""What scripts/figure draws: a figure is one module below and one line in registry.FIGURES."""
