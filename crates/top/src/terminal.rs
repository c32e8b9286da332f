//! The terminal while it is ours, and what it was before, however this ends.

use crate::keys::{Key, Keys};
use crossterm::cursor::Show;
use crossterm::execute;
use crossterm::terminal::{
    disable_raw_mode, enable_raw_mode, size, EnterAlternateScreen, LeaveAlternateScreen,
};
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::Terminal;
use std::io::{stdout, Result, Stdout};
use std::time::Duration;

/// A screen of its own; what was on the terminal comes back with its end, and before a panic is told.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    keys: Keys,
    size: (u16, u16),
}

impl Screen {
    /// Takes the terminal.
    pub fn take() -> Result<Screen> {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            give_back();
            hook(info);
        }));
        enable_raw_mode()?;
        let taken = execute!(stdout(), EnterAlternateScreen)
            .and_then(|()| Ok((Terminal::new(CrosstermBackend::new(stdout()))?, Keys::open()?)));
        match taken {
            Ok((terminal, keys)) => Ok(Screen { terminal, keys, size: (0, 0) }),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }

    /// Draws on it.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Buffer)) -> Result<()> {
        self.terminal.draw(|frame| draw(frame.buffer_mut())).map(drop)
    }

    /// The next key, if one comes in this time, and whether the window has another size since this was last asked.
    pub fn key(&mut self, at_most: Duration) -> Result<(Option<Key>, bool)> {
        let key = self.keys.next(at_most)?;
        let before = std::mem::replace(&mut self.size, size()?);
        Ok((key, self.size != before))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Whoever looks at the terminal may be gone; then nothing is to be given back.
fn give_back() {
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}
