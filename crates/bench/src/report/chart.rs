//! Line charts as SVG, written by hand so that a page needs no scripts and nothing from the network.

use std::fmt::Write;

const WIDTH: f64 = 920.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 30.0;

/// Points that one line has at most; more seconds than that are drawn by their means.
const POINTS: usize = 600;

/// How values become heights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// From 0 to the largest.
    Linear,
    /// Powers of ten between the smallest and the largest.
    Logarithmic,
}

/// What lies along the horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Across {
    /// Seconds of a run.
    Seconds,
    /// Percent of what was measured.
    Percent,
}

impl Across {
    fn unit(self) -> &'static str {
        match self {
            Across::Seconds => "s",
            Across::Percent => "%",
        }
    }
}

/// One line.
pub struct Line {
    pub label: String,
    /// A colour of CSS.
    pub color: &'static str,
    /// One value per second, or percent; where there is none, the line has a gap.
    pub values: Vec<Option<f64>>,
}

/// A period that is shaded, in seconds.
pub struct Band {
    pub label: String,
    pub from: f64,
    pub to: f64,
}

/// A chart over the seconds of a run, or over percent.
pub struct Chart {
    pub unit: &'static str,
    pub scale: Scale,
    pub across: Across,
    pub lines: Vec<Line>,
    pub bands: Vec<Band>,
}

impl Chart {
    /// The `<svg>` element.
    pub fn svg(&self) -> String {
        let seconds = self.lines.iter().map(|line| line.values.len()).max().unwrap_or(0).max(1) as f64;
        let frame = Frame { seconds, axis: Axis::new(self) };
        let mut out = format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" class=\"chart\">");
        for band in &self.bands {
            frame.band(&mut out, band);
        }
        frame.grid(&mut out, self.unit, self.across.unit());
        for line in &self.lines {
            frame.line(&mut out, line);
        }
        out.push_str("</svg>");
        out
    }
}

/// The vertical axis: which values lie at the bottom and the top, and which of them get a line.
struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    ticks: Vec<f64>,
}

impl Axis {
    fn new(chart: &Chart) -> Axis {
        let values = || chart.lines.iter().flat_map(|line| line.values.iter().flatten().copied());
        let largest = values().fold(0.0, f64::max);
        match chart.scale {
            Scale::Linear => {
                let step = round_step(if largest > 0.0 { largest / 5.0 } else { 1.0 });
                let ticks: Vec<f64> =
                    (0..=(largest / step).ceil().max(1.0) as usize).map(|n| n as f64 * step).collect();
                Axis { scale: chart.scale, low: 0.0, high: ticks[ticks.len() - 1], ticks }
            }
            Scale::Logarithmic => {
                let smallest = values().filter(|value| *value > 0.0).fold(f64::MAX, f64::min);
                let first = if smallest < f64::MAX { smallest.log10().floor() as i32 } else { 0 };
                let last =
                    if largest > 0.0 { (largest.log10().ceil() as i32).max(first + 1) } else { first + 1 };
                let ticks: Vec<f64> = (first..=last).map(|exponent| 10f64.powi(exponent)).collect();
                Axis { scale: chart.scale, low: ticks[0], high: ticks[ticks.len() - 1], ticks }
            }
        }
    }

    fn height(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
        };
        HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)
    }
}

/// The chart's area.
struct Frame {
    seconds: f64,
    axis: Axis,
}

impl Frame {
    fn x(&self, second: f64) -> f64 {
        LEFT + second / self.seconds * (WIDTH - LEFT - RIGHT)
    }

    fn band(&self, out: &mut String, band: &Band) {
        let (from, to) =
            (self.x(band.from.clamp(0.0, self.seconds)), self.x(band.to.clamp(0.0, self.seconds)));
        let height = HEIGHT - BOTTOM - TOP;
        let _ = write!(
            out,
            "<rect class=\"band\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{height}\"/>\
             <text class=\"bandname\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            to - from,
            from + 5.0,
            TOP + 13.0,
            escape(&band.label)
        );
    }

    fn grid(&self, out: &mut String, unit: &str, across: &str) {
        for tick in &self.axis.ticks {
            let y = self.axis.height(*tick);
            let _ = write!(
                out,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                y + 4.0,
                short(*tick)
            );
        }
        let step = round_step(self.seconds / 10.0).max(1.0);
        for n in 0..=(self.seconds / step) as usize {
            let second = n as f64 * step;
            let (x, y) = (self.x(second), HEIGHT - BOTTOM + 16.0);
            let _ = write!(
                out,
                "<text class=\"tick\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{second} {across}</text>"
            );
        }
        let _ = write!(
            out,
            "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\">{unit}</text>",
            LEFT + 4.0,
            HEIGHT - BOTTOM - 5.0
        );
    }

    fn line(&self, out: &mut String, line: &Line) {
        let group = line.values.len().div_ceil(POINTS).max(1);
        let mut path = String::new();
        let mut pen_is_down = false;
        for (index, values) in line.values.chunks(group).enumerate() {
            let known: Vec<f64> = values.iter().flatten().copied().collect();
            if known.is_empty() {
                pen_is_down = false;
                continue;
            }
            let mean = known.iter().sum::<f64>() / known.len() as f64;
            let middle = index as f64 * group as f64 + values.len() as f64 / 2.0;
            let command = if pen_is_down { 'L' } else { 'M' };
            let _ = write!(path, "{command}{:.1} {:.1}", self.x(middle), self.axis.height(mean));
            pen_is_down = true;
        }
        let _ = write!(
            out,
            "<path d=\"{path}\" stroke=\"{}\" class=\"line\"><title>{}</title></path>",
            line.color,
            escape(&line.label)
        );
    }
}

/// 1, 2 or 5 times a power of ten, not below `step`.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|rounded| *rounded >= step * 0.999)
        .unwrap_or(step)
}

/// A tick's value in few characters.
fn short(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{}M", v / 1e6),
        v if v >= 1e3 => format!("{}k", v / 1e3),
        v if v >= 1.0 || v == 0.0 => format!("{v}"),
        v => format!("{:.*}", (-v.log10()).ceil().max(1.0) as usize, v),
    }
}

/// Text for HTML and SVG.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(scale: Scale, values: Vec<Option<f64>>) -> Chart {
        let line = Line { label: "a<b".into(), color: "red", values };
        Chart {
            unit: "ms",
            scale,
            across: Across::Seconds,
            lines: vec![line],
            bands: vec![Band { label: "x".into(), from: 1.0, to: 99.0 }],
        }
    }

    #[test]
    fn odd_data_make_valid_charts() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            for values in [
                vec![],
                vec![None; 5],
                vec![Some(0.0); 3],
                vec![Some(1.0)],
                vec![Some(0.003), None, Some(70_000.0)],
                vec![Some(1234.5); 5000],
            ] {
                let svg = chart(scale, values).svg();
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
                assert!(svg.contains("a&lt;b") && !svg.contains("a<b"));
            }
        }
    }

    #[test]
    fn gaps_lift_the_pen_and_heights_grow_with_values() {
        let svg = chart(Scale::Linear, vec![Some(1.0), None, Some(2.0), Some(3.0)]).svg();
        let path = svg.split("<path d=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        assert_eq!((path.matches('M').count(), path.matches('L').count()), (2, 1), "{path}");
        let axis = Axis::new(&chart(Scale::Logarithmic, vec![Some(0.5), Some(30.0)]));
        assert_eq!((axis.low, axis.high), (0.1, 100.0));
        assert!(axis.height(30.0) < axis.height(0.5));
    }

    #[test]
    fn steps_are_round() {
        assert_eq!(
            [0.9, 1.0, 1.2, 3.0, 51.0, 0.04].map(round_step).map(|step| (step * 100.0).round()),
            [100.0, 100.0, 200.0, 500.0, 10_000.0, 5.0]
        );
        assert_eq!(
            [0.0, 0.001, 0.5, 20.0, 2500.0, 3e6].map(short),
            ["0", "0.001", "0.5", "20", "2.5k", "3M"]
        );
    }
}
