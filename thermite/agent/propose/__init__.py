"""PURE but for a seed. Proposers: candidates made without running foreign code."""
