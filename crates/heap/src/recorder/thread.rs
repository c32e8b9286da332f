//! What a thread of the server knows of itself. It lives in the thread's own storage, which C++ declares
//! (shim/thread_state.cc): there it can be said that reaching it must not allocate.

/// A hook of this thread is at work: what it allocates or frees meanwhile, in a signal handler, is not looked at.
pub const INSIDE: u32 = 1;
/// The thread reads what is recorded: what it allocates for that is not recorded, what it frees is.
pub const PAUSED: u32 = 2;

/// Of one thread, and used by it alone. Zeros are a thread that works for nobody.
#[repr(C)]
#[derive(Debug, Default)]
pub struct ThreadState {
    /// `INSIDE`, `PAUSED`.
    pub flags: u32,
    /// Whether everything that it allocates is recorded, for the statement that it works on.
    pub exact: u32,
    /// Of the connection it works for; 0: for none.
    pub session: u64,
    /// Which of the session's statements that are followed.
    pub statement: u32,
    /// Of the statement, in `statements`.
    pub digest: u32,
    /// While which plugin was there the server told of the statement.
    pub epoch: u64,
    /// Bytes until the next sample, by this mean.
    until_sample: i64,
    period: u64,
    random: u64,
}

impl ThreadState {
    /// It works for this session from now on.
    pub fn begin(&mut self, session: u64, digest: u32) {
        (self.session, self.digest) = (session, digest);
    }

    /// It works for nobody.
    pub fn end(&mut self) {
        (self.exact, self.session, self.statement, self.digest) = (0, 0, 0, 0);
    }

    /// Whether this allocation is taken: each byte is one that is, with a chance of 1 in `period`.
    pub fn is_sampled(&mut self, bytes: u64, period: u64) -> bool {
        if period <= 1 {
            return true;
        }
        if self.period != period {
            self.period = period;
            self.until_sample = self.draw(period);
        }
        self.until_sample = self.until_sample.saturating_sub(bytes.min(i64::MAX as u64) as i64);
        if self.until_sample > 0 {
            return false;
        }
        self.until_sample = self.draw(period);
        true
    }

    /// Bytes up to the next one that is taken.
    fn draw(&mut self, period: u64) -> i64 {
        if self.random == 0 {
            // Where it lies is another place for each thread.
            self.random = (std::ptr::from_ref(self) as u64 ^ 0x9E37_79B9_7F4A_7C15) | 1;
        }
        // xorshift64*: without memory, and good enough for waiting times.
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        let chance =
            ((self.random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) + 1) as f64 / (1u64 << 53) as f64;
        (-chance.ln() * period as f64).ceil().max(1.0) as i64
    }
}
