//! The description of the API, with the models that are served filled in.

use crate::models::registry::ServedModel;
use serde_json::{Value, json};
use std::sync::Arc;

/// All but what depends on the models.
const TEMPLATE: &str = include_str!("openapi.json");

/// The document.
pub fn document(models: &[Arc<ServedModel>]) -> Value {
    let mut document: Value = serde_json::from_str(TEMPLATE).unwrap_or_default(); // a test reads it
    document["info"]["version"] = json!(env!("CARGO_PKG_VERSION"));
    let schemas = &mut document["components"]["schemas"];
    schemas["Model"]["enum"] = models.iter().map(|live| json!(live.name)).collect();
    let mut rows: Vec<Value> = Vec::new();
    let mut classes: Vec<Value> = Vec::new();
    for live in models {
        let row = row(live);
        if !rows.contains(&row) {
            rows.push(row);
        }
        for class in &live.classes {
            if !classes.contains(&json!(class)) {
                classes.push(json!(class));
            }
        }
    }
    schemas["Row"] = if rows.len() == 1 {
        rows.remove(0)
    } else {
        json!({ "anyOf": rows })
    };
    schemas["Class"]["enum"] = classes.into();
    let parameters = &mut document["components"]["parameters"];
    parameters["model"]["required"] = json!(models.len() > 1);
    document
}

/// A row of one model: a list of its cells, or an object of named ones.
fn row(live: &ServedModel) -> Value {
    let columns = &live.encoder;
    let width = columns.width();
    let cell = |column: usize| match columns.categories(column) {
        Some(names) => {
            json!({ "enum": names.iter().map(|name| json!(name)).chain([json!(null)]).collect::<Vec<_>>() })
        }
        None if columns.date(column).is_some() => {
            json!({ "type": ["string", "number", "null"], "description": "A date such as 2026-01-31, or days since 1970-01-01" })
        }
        None if columns.is_discrete(column) => json!({ "$ref": "#/components/schemas/Code" }),
        None => json!({ "$ref": "#/components/schemas/Number" }),
    };
    let mut list = json!({ "type": "array", "minItems": width, "maxItems": width });
    let is_number = |column: usize| !columns.is_discrete(column) && columns.date(column).is_none();
    if (0..width).all(is_number) {
        list["items"] = cell(0);
    } else {
        list["prefixItems"] = (0..width).map(cell).collect();
        list["items"] = json!(false);
    }
    if !columns.named {
        return list;
    }
    let named: serde_json::Map<String, Value> = (0..width)
        .map(|column| (columns.name(column).to_owned(), cell(column)))
        .collect();
    // Other names are left out, but not all of them may be others.
    let own = (0..width).map(|column| json!({ "required": [columns.name(column)] }));
    let own: Vec<Value> = own.chain([json!({ "maxProperties": 0 })]).collect();
    json!({ "anyOf": [list, { "type": "object", "properties": named, "anyOf": own }] })
}
