//! A finished figure.

use super::ink::{Ink, THEME_CSS};

/// SVG figure with CSS variables as colours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    svg: String,
}

const STYLE: &str = "svg.plot{font-family:system-ui,sans-serif}svg.plot text{font-variant-numeric:tabular-nums}\
svg.plot polyline{stroke-linejoin:round;stroke-linecap:round}";

impl Figure {
    /// Turns what plotters drew into a figure described by `title`.
    pub(super) fn new(drawn: &str, title: &str, width: i32, height: i32) -> Self {
        let mut body = drawn.split_once('>').map_or("", |(_, body)| body).to_owned();
        for ink in Ink::all() {
            let plotters::style::RGBColor(r, g, b) = ink.stand_in();
            body = body.replace(&format!("\"#{r:02X}{g:02X}{b:02X}\""), &format!("\"var({})\"", ink.variable()));
        }
        for noise in [" opacity=\"1\"", " font-family=\"sans-serif\"", " stroke=\"none\""] {
            body = body.replace(noise, "");
        }
        let body = body.replace(" \"/>", "\"/>").replace(">\n", ">").replace("\n</text>", "</text>");
        let title = escape(title);
        let svg = format!(
            "<svg class=\"plot\" role=\"img\" viewBox=\"0 0 {width} {height}\" xmlns=\"http://www.w3.org/2000/svg\"><title>{title}</title>{body}"
        );
        Self { svg }
    }

    /// The `svg` element, for a page that defines the variables (see [`THEME_CSS`]).
    pub fn inline(&self) -> &str {
        &self.svg
    }

    /// A file of its own, in both themes.
    pub fn standalone(&self) -> String {
        let style = format!("<style>{THEME_CSS}svg.plot{{background:var(--page)}}{STYLE}</style>");
        let at = self.svg.find('>').map_or(0, |end| end + 1);
        format!("{}{style}{}\n", &self.svg[..at], &self.svg[at..])
    }

    /// Rules that a page needs for [`Self::inline`], next to [`THEME_CSS`].
    pub fn page_css() -> &'static str {
        STYLE
    }
}

/// Text as it stands in markup.
pub(in crate::report) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
