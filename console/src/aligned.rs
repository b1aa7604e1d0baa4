//! Aligned columns for people, as wide as the terminal allows.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};

/// Spaces between two columns.
const GAP: usize = 2;

/// Width up to which the texts of a column stay whole on a narrow terminal.
const SHORT: usize = 12;

/// A table as text: names of the columns, whether each is numeric, and the rows.
pub(crate) struct AlignedTable<'a> {
    pub(crate) names: Vec<&'a str>,
    pub(crate) numeric: Vec<bool>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl AlignedTable<'_> {
    /// Lines of the table. Where `width` is given and the table is wider, names of columns break at
    /// underscores and long texts wrap; the first column, numbers and short texts stay whole.
    pub(crate) fn lines(&self, width: Option<usize>) -> Vec<String> {
        let widths: Vec<usize> = (0..self.names.len()).map(|at| self.content_width(at)).collect();
        let natural: usize = self.names.iter().zip(&widths).map(|(name, &content)| content.max(name.len()) + GAP).sum();
        let width = width.filter(|&width| natural > width + GAP);
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        let name = |(name, &content): (&&str, &usize)| match width {
            Some(_) => broken(name, content).to_uppercase(),
            None => name.to_uppercase(),
        };
        table.set_header(self.names.iter().zip(&widths).map(name));
        for row in &self.rows {
            table.add_row(row);
        }
        for (at, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, GAP as u16));
            if self.numeric[at] {
                column.set_cell_alignment(CellAlignment::Right);
            }
            if width.is_some() && (at == 0 || self.numeric[at] || widths[at] <= SHORT) {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        if let Some(width) = width {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            // The gap behind the last column may stand outside.
            table.set_width((width + GAP) as u16);
        }
        table.lines().map(|line| line.trim_end().to_owned()).collect()
    }

    fn content_width(&self, at: usize) -> usize {
        self.rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0)
    }
}

/// Name of a column on several lines, broken behind underscores, each line as wide as `content` or as
/// one word.
fn broken(name: &str, content: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in name.split_inclusive('_') {
        match lines.last_mut().filter(|line| line.len() + word.len() <= content) {
            Some(line) => line.push_str(word),
            None => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> AlignedTable<'static> {
        let about = "a text of some length that a narrow terminal shows on several lines";
        AlignedTable {
            names: vec!["policy", "difference_secs", "about"],
            numeric: vec![false, true, false],
            rows: vec![vec!["fifo-backfill".into(), "-12345.6".into(), about.into()]],
        }
    }

    #[test]
    fn a_pipe_gets_one_line_for_each_row() {
        assert_eq!(table().lines(None).len(), 2);
        assert_eq!(table().lines(Some(200)), table().lines(None));
    }

    #[test]
    fn a_narrow_terminal_gets_whole_names_and_numbers() {
        let lines = table().lines(Some(60));
        assert!(lines.iter().all(|line| line.chars().count() <= 60), "{lines:#?}");
        assert!(lines.len() > 3 && lines.iter().any(|line| line.contains("fifo-backfill     -12345.6")), "{lines:#?}");
        assert!(lines[0].contains("DIFFERENCE_") && lines[1].contains("SECS"), "{lines:#?}");
    }
}
