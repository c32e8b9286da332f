//! Tests of the border and of the operations behind it, against the model engine.
