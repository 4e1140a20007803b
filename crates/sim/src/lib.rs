//! A small simulated Talos node, for the demo.
