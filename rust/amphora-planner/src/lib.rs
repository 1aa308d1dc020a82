//! Static memory planning: buffers with lives and sizes in, offsets out.
//!
//! The binding of `include/amphora/planner.h`.

use std::ffi::{c_char, c_int, c_void, CStr, CString};

#[repr(C)]
struct RawBuffer {
    first: u32,
    end: u32,
    size: u64,
    alignment: u64,
    flags: u32,
    n_gaps: u32,
    offset: u64,
    gaps: *const Span,
}

#[repr(C)]
struct RawProblem {
    struct_size: usize,
    buffers: *const RawBuffer,
    relations: *const Relation,
    n_buffers: u32,
    n_relations: u32,
    capacity: u64,
    alignment: u64,
    conflicts: *const Pair,
    n_conflicts: usize,
    clocks: *const i64,
    n_streams: u32,
}

#[repr(C)]
struct RawOptions {
    struct_size: usize,
    planner: *const c_char,
    seed: u64,
    steps: u64,
    seconds: f64,
    lowest: c_int,
    progress: *const c_void,
    context: *mut c_void,
}

#[repr(C)]
struct RawResult {
    status: c_int,
    proved: c_int,
    stopped: c_int,
    height: u64,
    bound: u64,
    nodes: u64,
    message: [c_char; 160],
}

extern "C" {
    fn amphora_planner_place(
        problem: *const RawProblem,
        options: *const RawOptions,
        offsets: *mut u64,
        result: *mut RawResult,
    ) -> c_int;
}

/// Steps [first, end).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub first: u32,
    pub end: u32,
}

/// Two buffers, by index, that conflict whatever their lives.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    pub a: u32,
    pub b: u32,
}

/// What a relation asks of its buffers `a` and `b`.
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `a` is part of `b`, from its byte `bytes` on.
    Inside = 0,
    /// They may share any bytes.
    Share = 1,
    /// They may lie at one offset, or apart.
    Same = 2,
    /// They may overlap where offset of `a` + `bytes` <= offset of `b`.
    Below = 3,
}

/// Of two buffers, by index.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Relation {
    pub kind: Kind,
    pub a: u32,
    pub b: u32,
    pub bytes: i64,
}

#[derive(Clone, Debug, Default)]
pub struct Buffer {
    pub first: u32,
    pub end: u32,
    pub size: u64,
    /// 0 or 1: none.
    pub alignment: u64,
    pub pin: Option<u64>,
    /// An offset that is kept where that costs nothing.
    pub hint: Option<u64>,
    pub gaps: Vec<Span>,
}

/// What is 0 is the default.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub capacity: u64,
    /// Of every offset.
    pub alignment: u64,
    /// "portfolio" where there is none.
    pub planner: Option<String>,
    pub seed: u64,
    pub steps: u64,
    pub seconds: f64,
    pub lowest: bool,
    pub relations: Vec<Relation>,
    /// Beside the lives of the buffers.
    pub conflicts: Vec<Pair>,
    /// Vector clocks: for each buffer when it is born in each stream, then
    /// when it dies.
    pub clocks: Vec<i64>,
    pub n_streams: u32,
}

#[derive(Debug)]
pub struct Placement {
    pub offsets: Vec<u64>,
    pub height: u64,
    pub bound: u64,
    pub proved: bool,
    pub stopped: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// No placement exists: proved.
    Infeasible,
    /// None was found: more steps or seconds may.
    Undecided,
    Invalid(String),
    NoMemory,
    Bug,
}

impl std::fmt::Display for Error {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(match self {
            Error::Infeasible => "no placement exists",
            Error::Undecided => "undecided: allow more steps or seconds",
            Error::Invalid(what) => what,
            Error::NoMemory => "out of memory",
            Error::Bug => "a bug in the library",
        })
    }
}

impl std::error::Error for Error {}

const PINNED: u32 = 1;
const HINTED: u32 = 2;

pub fn place(buffers: &[Buffer], options: &Options) -> Result<Placement, Error> {
    let streams = options.n_streams as usize;
    if options.clocks.len() != 2 * streams * buffers.len() {
        return Err(Error::Invalid("not two clocks a buffer".into()));
    }
    let raw: Vec<RawBuffer> = buffers
        .iter()
        .map(|b| RawBuffer {
            first: b.first,
            end: b.end,
            size: b.size,
            alignment: b.alignment,
            flags: match (b.pin, b.hint) {
                (Some(_), _) => PINNED,
                (None, Some(_)) => HINTED,
                (None, None) => 0,
            },
            n_gaps: b.gaps.len() as u32,
            offset: b.pin.or(b.hint).unwrap_or(0),
            gaps: b.gaps.as_ptr(),
        })
        .collect();
    let problem = RawProblem {
        struct_size: std::mem::size_of::<RawProblem>(),
        buffers: raw.as_ptr(),
        relations: options.relations.as_ptr(),
        n_buffers: raw.len() as u32,
        n_relations: options.relations.len() as u32,
        capacity: options.capacity,
        alignment: options.alignment,
        conflicts: options.conflicts.as_ptr(),
        n_conflicts: options.conflicts.len(),
        clocks: options.clocks.as_ptr(),
        n_streams: options.n_streams,
    };
    let planner = match options.planner.as_deref().map(CString::new) {
        Some(Err(_)) => return Err(Error::Invalid("a planner with a NUL".into())),
        Some(Ok(name)) => Some(name),
        None => None,
    };
    let asked = RawOptions {
        struct_size: std::mem::size_of::<RawOptions>(),
        planner: planner.as_ref().map_or(std::ptr::null(), |name| name.as_ptr()),
        seed: options.seed,
        steps: options.steps,
        seconds: options.seconds,
        lowest: options.lowest as c_int,
        progress: std::ptr::null(),
        context: std::ptr::null_mut(),
    };
    let mut offsets = vec![0; raw.len()];
    // SAFETY: all pointers are to values that outlive the call; offsets has one
    // element a buffer.
    let (status, result) = unsafe {
        let mut result: RawResult = std::mem::zeroed();
        let status = amphora_planner_place(&problem, &asked, offsets.as_mut_ptr(), &mut result);
        (status, result)
    };
    // SAFETY: the library ends the message with a NUL.
    let message = unsafe { CStr::from_ptr(result.message.as_ptr()) };
    match status {
        0 => Ok(Placement {
            offsets,
            height: result.height,
            bound: result.bound,
            proved: result.proved != 0,
            stopped: result.stopped != 0,
        }),
        1 => Err(Error::Infeasible),
        2 => Err(Error::Undecided),
        3 => Err(Error::Invalid(message.to_string_lossy().into_owned())),
        4 => Err(Error::NoMemory),
        _ => Err(Error::Bug),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> Vec<Buffer> {
        [(0, 2, 8), (1, 4, 4), (3, 5, 12)]
            .iter()
            .map(|&(first, end, size)| Buffer { first, end, size, ..Default::default() })
            .collect()
    }

    #[test]
    fn three_in_sixteen_bytes() {
        let options = Options { capacity: 16, ..Default::default() };
        let found = place(&three(), &options).unwrap();
        assert_eq!(found.height, 16);
        assert!(found.proved);
    }

    #[test]
    fn conflicts_and_streams() {
        let size = |size| Buffer { size, ..Default::default() };
        let three = [size(8), size(4), size(2)];
        let pairs = Options {
            conflicts: vec![Pair { a: 0, b: 1 }, Pair { a: 1, b: 2 }],
            ..Default::default()
        };
        assert_eq!(place(&three, &pairs).unwrap().height, 12);
        let streams = Options {
            clocks: vec![0, 0, 3, 0, 0, 1, 2, 4, 3, 4, 5, 5],
            n_streams: 2,
            ..Default::default()
        };
        assert_eq!(place(&three, &streams).unwrap().height, 12);
        let short = Options { n_streams: 2, ..Default::default() };
        assert!(matches!(place(&three, &short), Err(Error::Invalid(_))));
    }

    #[test]
    fn relations_hints_and_planners() {
        let two = |hint| {
            let buffer = Buffer { end: 2, size: 8, ..Default::default() };
            [Buffer { hint, ..buffer.clone() }, buffer]
        };
        let below = Relation { kind: Kind::Below, a: 0, b: 1, bytes: 3 };
        let related = Options { relations: vec![below], ..Default::default() };
        assert_eq!(place(&two(None), &related).unwrap().height, 11);
        let plain = Options::default();
        assert_eq!(place(&two(Some(8)), &plain).unwrap().offsets, [8, 0]);
        let named = |name: &str| Options {
            planner: Some(name.into()),
            alignment: 16,
            ..Default::default()
        };
        assert_eq!(place(&two(None), &named("exact")).unwrap().height, 24);
        let text = place(&two(None), &named("best")).unwrap_err().to_string();
        assert!(text.contains("'best'"), "{text}");
    }

    #[test]
    fn errors_are_told_apart() {
        let small = Options { capacity: 15, ..Default::default() };
        assert_eq!(place(&three(), &small).unwrap_err(), Error::Infeasible);
        let backwards = [Buffer { first: 2, end: 1, size: 1, ..Default::default() }];
        let wrong = place(&backwards, &Options::default()).unwrap_err();
        assert!(matches!(wrong, Error::Invalid(text) if text.contains("buffer 0")));
    }
}
