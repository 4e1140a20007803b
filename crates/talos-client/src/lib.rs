//! A client of a Talos node: talosconfig, mutual TLS, apply, observe, watch.
