//! The configuration repository as types, layers, and the lints that need only the tree.
