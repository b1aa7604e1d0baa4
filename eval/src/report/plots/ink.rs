//! Colours by role.
//!
//! plotters knows only RGB values, so each role has a value of its own while drawing, and
//! [`super::Figure`] replaces it with the role's CSS variable. Series colours keep a contrast of at
//! least 3:1 to the page in both themes and differ in lightness too, so that they stay apart for
//! colour-blind readers (after Okabe and Ito).

use plotters::style::RGBColor;

/// Number of series colours; they repeat after that.
pub(crate) const SERIES: usize = 8;

/// Role of a mark, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    /// Labels to be read first.
    Text,
    /// Axis labels and other secondary text.
    Muted,
    /// Gridlines of a panel.
    Grid,
    /// The page, to lift marks off what lies behind.
    Page,
    /// A better result.
    Good,
    /// A worse result.
    Bad,
    /// A series or an application, by index.
    Series(usize),
}

impl Ink {
    const ROLES: [Self; 6] = [Self::Text, Self::Muted, Self::Grid, Self::Page, Self::Good, Self::Bad];

    /// All inks, in the order of their declaration.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        Self::ROLES.into_iter().chain((0..SERIES).map(Self::Series))
    }

    /// The CSS variable.
    pub(crate) fn variable(self) -> String {
        match self {
            Self::Text => "--ink".into(),
            Self::Muted => "--muted".into(),
            Self::Grid => "--grid".into(),
            Self::Page => "--page".into(),
            Self::Good => "--good".into(),
            Self::Bad => "--bad".into(),
            Self::Series(index) => format!("--s{}", index % SERIES),
        }
    }

    /// The value that stands for it while drawing.
    pub(super) fn stand_in(self) -> RGBColor {
        let code = match self {
            Self::Series(index) => 100 + (index % SERIES) as u8,
            role => Self::ROLES.iter().position(|&other| other == role).unwrap_or_default() as u8,
        };
        RGBColor(1, 2, code)
    }
}

/// Values of the variables in both themes, for a page or a figure that stands alone.
pub const THEME_CSS: &str = "\
:root{color-scheme:light dark;--page:#fff;--raised:#f6f6f3;--ink:#1b1d20;--muted:#62676e;--grid:#e3e4e0;--good:#0b6e99;--bad:#b8480f;\
--s0:#0b6bb0;--s1:#c9540e;--s2:#0a8262;--s3:#a8508c;--s4:#8f6d00;--s5:#3d9ec9;--s6:#6650a4;--s7:#76695c}\
@media (prefers-color-scheme:dark){:root{--page:#15171b;--raised:#1d2026;--ink:#e9e9e6;--muted:#9ba1a9;--grid:#2d3138;--good:#58b4dd;--bad:#f0904f;\
--s0:#5aaeee;--s1:#f28c4b;--s2:#45c49c;--s3:#e093c6;--s4:#dfbb45;--s5:#8fd6f5;--s6:#a99be8;--s7:#bcae9f}}";
