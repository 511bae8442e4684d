"""Figures of BubbleTea: prefill in the bubbles of training."""
