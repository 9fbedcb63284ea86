//! A module of this crate uses only those that stand before it; so in the crates that have no tests in Rust.

#[path = "../../engine/tests/module_order/mod.rs"]
mod module_order;

#[test]
fn modules_use_only_those_before_them() {
    module_order::check(env!("CARGO_MANIFEST_DIR"));
}

#[test]
fn so_in_the_glue_of_python_and_of_the_browser() {
    for of in ["python", "web"] {
        module_order::check(&format!("{}/../{of}", env!("CARGO_MANIFEST_DIR")));
    }
}
