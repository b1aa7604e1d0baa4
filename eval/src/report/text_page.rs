//! The look of all pages, and a page of text, tables and figures in it.

use super::plots::{Figure, THEME_CSS, escape};
use super::{CHART_CSS, PAGE_CSS};

/// Script that the pages share, without the chart library: elements and sorted tables.
const SHARED_JS: &str = include_str!("../../assets/charts.js");
const TEXT_JS: &str = include_str!("../../assets/text.js");

/// Style of every page of goodput: colours of both themes, figures, text with tables, charts with their controls, and
/// paper.
pub fn page_style() -> String {
    [THEME_CSS, Figure::page_css(), PAGE_CSS, CHART_CSS].join("\n")
}

/// Self-contained page of text, tables and figures. All text is escaped. Equal parts give equal bytes.
#[derive(Clone, Debug)]
pub struct TextPage {
    title: String,
    header: String,
    main: String,
}

/// Table of a [`TextPage`], sorted by a click on a heading.
#[derive(Clone, Debug)]
pub struct PageTable {
    head: Vec<String>,
    left: usize,
    groups: Vec<Vec<Vec<PageCell>>>,
}

/// Cell of a [`PageTable`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageCell {
    text: String,
    small: String,
}

impl<T: Into<String>> From<T> for PageCell {
    fn from(text: T) -> Self {
        Self { text: text.into(), small: String::new() }
    }
}

impl PageCell {
    /// The cell with a smaller line below it.
    #[must_use]
    pub fn with_small(self, small: impl Into<String>) -> Self {
        Self { small: small.into(), ..self }
    }
}

impl PageTable {
    /// Table with these headings, of which the first `left` columns hold text and the others hold numbers.
    pub fn new<T: Into<String>>(head: impl IntoIterator<Item = T>, left: usize) -> Self {
        Self { head: head.into_iter().map(Into::into).collect(), left, groups: vec![Vec::new()] }
    }

    /// Adds a row, which has a cell for each heading.
    pub fn row(&mut self, cells: Vec<PageCell>) {
        if let Some(group) = self.groups.last_mut() {
            group.push(cells);
        }
    }

    /// Begins a group of rows, which stay together where the table is sorted.
    pub fn begin_group(&mut self) {
        if self.groups.last().is_some_and(|group| !group.is_empty()) {
            self.groups.push(Vec::new());
        }
    }

    fn html(&self) -> String {
        let class = |at: usize| if at < self.left { " class=\"text\"" } else { "" };
        let head = self.head.iter().enumerate().map(|(at, name)| format!("<th{}>{}</th>", class(at), escape(name)));
        let cell = |(at, cell): (usize, &PageCell)| {
            let small = match cell.small.as_str() {
                "" => String::new(),
                small => format!("<small>{}</small>", escape(small)),
            };
            format!("<td{}>{}{small}</td>", class(at), escape(&cell.text))
        };
        let row =
            |cells: &Vec<PageCell>| format!("<tr>{}</tr>\n", cells.iter().enumerate().map(cell).collect::<String>());
        let group = |rows: &Vec<Vec<PageCell>>| format!("<tbody>{}</tbody>", rows.iter().map(row).collect::<String>());
        format!(
            "<div class=\"wide bleed\"><table class=\"sortable wraps\"><thead><tr>{}</tr></thead>\n{}</table></div>\n",
            head.collect::<String>(),
            self.groups.iter().map(group).collect::<String>()
        )
    }
}

impl TextPage {
    /// Page with this title and nothing below it.
    pub fn new(title: &str) -> Self {
        Self { title: title.into(), header: String::new(), main: String::new() }
    }

    /// Adds the sentence that matters most, below the title.
    pub fn verdict(&mut self, text: &str) {
        self.header += &format!("<p class=\"verdict\">{}</p>\n", escape(text));
    }

    /// Adds a line of short facts, below the title.
    pub fn facts(&mut self, facts: &[String]) {
        let facts: String = facts.iter().map(|fact| format!("<span>{}</span>", escape(fact))).collect();
        self.header += &format!("<p class=\"facts\">{facts}</p>\n");
    }

    /// Adds a heading.
    pub fn heading(&mut self, text: &str) {
        self.main += &format!("<h2>{}</h2>\n", escape(text));
    }

    /// Adds a paragraph.
    pub fn paragraph(&mut self, text: &str) {
        self.main += &format!("<p>{}</p>\n", escape(text));
    }

    /// Adds a paragraph in smaller type.
    pub fn note(&mut self, text: &str) {
        self.main += &format!("<p class=\"note\">{}</p>\n", escape(text));
    }

    /// Adds a numbered list.
    pub fn list(&mut self, lines: &[String]) {
        let lines: String = lines.iter().map(|line| format!("<li>{}</li>", escape(line))).collect();
        self.main += &format!("<ol>{lines}</ol>\n");
    }

    /// Adds paragraphs that begin with a name in bold type.
    pub fn told(&mut self, named: &[(String, String)]) {
        let told = named.iter().map(|(name, text)| format!("<p><b>{}</b> {}</p>\n", escape(name), escape(text)));
        self.main += &format!("<div class=\"told\">{}</div>\n", told.collect::<String>());
    }

    /// Adds a figure.
    pub fn figure(&mut self, figure: &Figure, caption: &str) {
        let caption = escape(caption);
        self.main += &format!(
            "<figure><div class=\"wide\">{}</div><figcaption>{caption}</figcaption></figure>\n",
            figure.inline()
        );
    }

    /// Adds a table.
    pub fn table(&mut self, table: &PageTable) {
        self.main += &table.html();
    }

    /// Adds tables with headings side by side, as far as the page is wide enough.
    pub fn side_by_side(&mut self, tables: &[(String, PageTable)]) {
        let side = |(heading, table): &(String, PageTable)| {
            format!("<div><h2>{}</h2>\n{}</div>\n", escape(heading), table.html())
        };
        self.main += &format!("<div class=\"sides\">{}</div>\n", tables.iter().map(side).collect::<String>());
    }

    /// Adds the origin of the page: its command, and where they are known the program and a configuration.
    pub fn origin(&mut self, command: &str, program: Option<&str>, config: Option<&str>) {
        self.heading("How this page was made");
        self.main += &format!("<pre>{}</pre>", escape(command));
        if let Some(program) = program {
            self.paragraph(program);
        }
        if let Some(config) = config {
            let config = escape(config.trim_end());
            self.main += &format!("<details><summary>Configuration</summary><pre>{config}</pre></details>\n");
        }
    }

    /// The page as HTML, which fetches nothing.
    pub fn render(&self) -> String {
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style>\n{style}\n</style>\n\
             </head>\n<body>\n<header>\n<h1>{title}</h1>\n{header}</header>\n<main>\n{main}</main>\n\
             <script>{SHARED_JS}</script>\n<script>{TEXT_JS}</script>\n</body>\n</html>\n",
            title = escape(&self.title),
            style = page_style(),
            header = self.header,
            main = self.main,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_users_is_no_markup() {
        let mut page = TextPage::new("<b>");
        page.told(&[("a&b".into(), "<script>".into())]);
        let mut table = PageTable::new(["job", "age"], 1);
        table.row(vec!["<i>".into(), PageCell::from("1").with_small("<u>")]);
        page.table(&table);
        page.origin("goodput '<'", None, Some("x = '<'"));
        let page = page.render();
        for tag in ["<b>a&amp;b", "&lt;script&gt;", "&lt;i&gt;", "&lt;u&gt;", "<title>&lt;b&gt;</title>", "x = '&lt;'"]
        {
            assert!(page.contains(tag), "{tag}: {page}");
        }
        assert_eq!(page.matches("<script>").count(), 2, "the scripts of the page alone");
    }

    #[test]
    fn groups_of_rows_are_bodies_of_the_table() {
        let mut table = PageTable::new(["a"], 1);
        table.begin_group();
        table.row(vec!["1".into()]);
        table.begin_group();
        table.row(vec!["2".into()]);
        assert_eq!(table.html().matches("<tbody>").count(), 2);
    }
}
