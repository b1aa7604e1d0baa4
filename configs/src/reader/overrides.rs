//! Overrides: `KEY=VALUE` replaces one value of a file before the file is read.

use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Key, Table, TableLike, Value};

/// Sets the value of a dotted key. A number in the key is an index into an array:
/// `services.0.slo.latency_ms`.
///
/// The index after the last entry of an array adds an entry. Tables that are absent are added.
///
/// # Errors
/// A sentence that says which part of the key leads nowhere.
pub(super) fn set(document: &mut DocumentMut, path: &[Key], value: Value) -> Result<(), String> {
    in_table(document.as_table_mut(), path, value)
}

fn in_table(table: &mut dyn TableLike, path: &[Key], value: Value) -> Result<(), String> {
    let Some((first, rest)) = path.split_first() else { return Err("the key is empty".into()) };
    if rest.is_empty() {
        table.insert(first.get(), Item::Value(value));
        return Ok(());
    }
    if table.get(first.get()).is_none_or(Item::is_none) {
        // `tenants.0.name=a` in a file without tenants is the first of an array of tables.
        let absent = match rest[0].get() {
            "0" if rest.len() > 1 => Item::ArrayOfTables(ArrayOfTables::new()),
            "0" => Item::Value(Value::Array(Array::new())),
            _ => Item::Table(Table::new()),
        };
        table.insert(first.get(), absent);
    }
    match table.get_mut(first.get()) {
        Some(item) => in_item(first, item, rest, value),
        None => Err(format!("`{}` is not a table", first.get())),
    }
}

fn in_item(of: &Key, item: &mut Item, path: &[Key], value: Value) -> Result<(), String> {
    match item {
        Item::Table(table) => in_table(table, path, value),
        Item::ArrayOfTables(tables) => in_tables(of, tables, path, value),
        Item::Value(found) => in_value(of, found, path, value),
        Item::None => Err(format!("`{}` is not a table", of.get())),
    }
}

fn in_value(of: &Key, found: &mut Value, path: &[Key], value: Value) -> Result<(), String> {
    match found {
        Value::InlineTable(table) => in_table(table, path, value),
        Value::Array(array) => in_array(of, array, path, value),
        // A choice by name, such as `"profiled"`, gives way to one with values of its own.
        Value::String(_) => {
            *found = Value::InlineTable(InlineTable::new());
            in_value(of, found, path, value)
        }
        other => Err(format!("`{}` is a {}, and has no keys", of.get(), other.type_name())),
    }
}

fn in_tables(of: &Key, tables: &mut ArrayOfTables, path: &[Key], value: Value) -> Result<(), String> {
    let (at, rest) = index(of, path, tables.len())?;
    if rest.is_empty() {
        return Err(format!("`{0}.{at}` is a table: name a key in it, as in `{0}.{at}.name`", of.get()));
    }
    if at == tables.len() {
        tables.push(Table::new());
    }
    match tables.get_mut(at) {
        Some(table) => in_table(table, rest, value),
        None => Err(format!("`{}` has no entry {at}", of.get())),
    }
}

fn in_array(of: &Key, array: &mut Array, path: &[Key], value: Value) -> Result<(), String> {
    let (at, rest) = index(of, path, array.len())?;
    if rest.is_empty() {
        if at == array.len() {
            array.push(value);
        } else {
            array.replace(at, value);
        }
        return Ok(());
    }
    match array.get_mut(at) {
        Some(found) => in_value(of, found, rest, value),
        None => Err(format!("`{}` has no entry {at}: it has {}", of.get(), array.len())),
    }
}

/// Index at the front of a path, at most `len`, and what follows.
fn index<'a>(of: &Key, path: &'a [Key], len: usize) -> Result<(usize, &'a [Key]), String> {
    let of = of.get();
    let Some((first, rest)) = path.split_first() else { return Err(format!("`{of}` is an array")) };
    match first.get().parse::<usize>() {
        Ok(at) if at <= len => Ok((at, rest)),
        Ok(at) => Err(format!("`{of}` has no entry {at}: it has {len}, counted from 0")),
        Err(_) => {
            Err(format!("`{of}` is an array: name an entry by its number, as in `{of}.0`, not `{of}.{}`", first.get()))
        }
    }
}
