//! From intent to composed documents with provenance, to the plan, to the artifact.
