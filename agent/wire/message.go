// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/internal/excerpt"
)

// The ops of a call. Each says what goes out after Call and what comes back
// after Reply; Failure may take the place of anything that comes back.
const (
	// OpPing: nothing; Reply is Info, Done.
	OpPing = "ping"
	// OpStart: Start and ID; if Start.StdinSize > 0 that many bytes of Data, which
	// come before anything is started; if Start.Held, End, before which nothing is
	// started either; if Start.StreamStdin, Data as long as the caller likes and
	// End. Reply is a Record, then log frames, Done is an Ending.
	OpStart = "start"
	// OpStartMasked: OpStart with a Start.Redact that is not empty. It is an op of its own so
	// that an agent that knows no Redact refuses it before anything runs.
	OpStartMasked = "start_masked"
	// OpStartMerged: OpStart with Start.Merge, and any Start.Redact. It is an op of its own for the
	// same reason.
	OpStartMerged = "start_merged"
	// OpRunIn: Start, ID; In, the process of a shell that is to run the command in itself; Data, up to MaxData in all,
	// that tells the shell so, and End, before which nothing is done. Nothing is started: the Record's Streams is
	// where the shell finds the command's streams, and stands for each NUL of Data, which the agent writes to the
	// shell's input. Without Data the client does. With Start.StreamStdin the command's input comes by OpInput. Back
	// as with OpStart. Told ends the command, as OpConclude does.
	OpRunIn = "run_in"
	// OpConclude: ID, of such a command that has ended, and Result, of which ExitCode, Signal, Cause and
	// CauseDetail count. Reply is the Record, Done. Of several ends the first stands; the shell's end is one, too.
	OpConclude = "conclude"
	// OpAttach: ID, After; Data and End reach a streamed stdin. Back as with
	// OpStart, but only output with a number above After, and of what there is
	// already no more than the last Recent bytes, if that is not 0. With Lossless a process
	// that was started so waits for this connection.
	OpAttach = "attach"
	// OpProcess: ID. Reply is a Record, Done.
	OpProcess = "process"
	// OpProcesses: Running. Reply, an Item (Record) for each, oldest first, Done.
	OpProcesses = "processes"
	// OpSignal: ID, Signal, Tree; if YoungerMS is not 0, to what the process started in
	// the last YoungerMS, and not to itself; if SinceClockMS is not 0 either, since then by the
	// agent's own clock: however long the request took. Reply, Done.
	OpSignal = "signal"
	// OpWait: ID. Reply is a Record, Done is an Ending, when the process has ended.
	OpWait = "wait"
	// OpInput: ID and Input; Input.Size bytes of Data. Reply is a Taken, when the
	// process has taken them or Input.PatienceMS passed; Done.
	OpInput = "input"
	// OpLargeInput: OpInput with an Input.Size of up to MaxLargeInput. It is an op of its own so
	// that an agent that takes MaxData only refuses it before it takes anything.
	OpLargeInput = "large_input"
	// OpResize: ID, Cols, Rows. Reply, Done.
	OpResize = "resize"
	// OpLimitLogs: Size, the most that all logs may take together, in bytes. Reply, Done.
	OpLimitLogs = "limit_logs"
	// OpKill: ID, Cause. Reply, Done when nothing of it is left.
	OpKill = "kill"
	// OpShutdown: GraceMS, Cause, which is "stopped" where it is empty. Reply, Done when no
	// process is left.
	OpShutdown = "shutdown"
	// OpEnd: GraceMS. As OpShutdown; behind Done the agent ends, and what it is process 1 of.
	OpEnd = "end"
	// OpSuspend: Turn. Reply, Done when the time limits of all processes stand still and
	// none is being started; nothing is until OpContinue, or until the agent has run for
	// 10 s: it was not frozen then. A Turn below that of an earlier call is Failure
	// "state", and has no effect.
	OpSuspend = "suspend"
	// OpContinue: Turn. Time limits go on with what was left, and starts that wait go on.
	// Reply, Done. The Turn is as with OpSuspend.
	OpContinue = "continue"

	// OpReadDisk: nothing. Every process stands still, whatever started it, from before the Reply until the call ends: with Done,
	// or as the client goes away. Data is an archive of the disk's directories, see package agent/server/disk; Done.
	OpReadDisk = "read_disk"
	// OpFillDisk: Data, such an archive, and End. What the disk's directories hold is removed, and they are filled from it. Nothing may
	// run meanwhile. Reply after End, Done, when all is on the disk; after a Failure a part is.
	OpFillDisk = "fill_disk"
	// OpLost: Reply is a Lost, Done.
	OpLost = "lost"

	// OpSudo: Sudo, who may use sudo from now on, until the next such call. Reply, Done.
	OpSudo = "sudo"
	// OpAccount: Account. The sandbox's user is called so from then on, in the files that tell of
	// accounts and by what is started; its directories are made. Reply, Done.
	OpAccount = "account"
	// OpAccountMade: Reply, Done once the account of the last OpAccount is made.
	OpAccountMade = "account_made"

	// OpPorts: Reply is a Ports, Done.
	OpPorts = "ports"
	// OpDial: Port. Reply when the connection is made; then Data both ways, and an
	// End in a direction that sends nothing more; Done after both.
	OpDial = "dial"

	// OpRead: Path, User, Offset, Length, Version. Reply is a FileInfo, Data, Done.
	OpRead = "read"
	// OpWrite: Path, User, Mode, Size, Parents, Sync, Attributes; Data, End. Reply after End is a Written, Done.
	OpWrite = "write"
	// OpWriteWith: OpWrite with Attributes. It is an op of its own so that an agent that knows none refuses it.
	OpWriteWith = "write_with"
	// OpWriteIf: OpWrite with If, which tells also whether there are Attributes: the old file is looked at before the
	// first Data is read, and again just before the new one takes its place. One that is not as If says is the code
	// precondition_failed. It is an op of its own so that an agent that knows no conditions refuses it.
	OpWriteIf = "write_if"
	// OpPack: Path, User, Pack. Reply is the FileInfo of what is packed, then Data, which is a tar
	// archive of it; Done is a Packed.
	OpPack = "pack"
	// OpUnpack: Path, User, Size, Parents, Sync, Owners; Data, which is a tar archive, and End. It is
	// unpacked as it comes. Reply after End is an Unpacked, Done.
	OpUnpack = "unpack"
	// OpUnpackEach: OpUnpack that tells what became of each entry, in their order: Items (arrays of Outcome) come
	// between the Reply and Done. Each file takes its name when it is complete, small ones, too.
	OpUnpackEach = "unpack_each"
	// OpStat: Path, User, Version. Reply is a FileInfo, Done.
	OpStat = "stat"
	// OpList: Path, User, Limit, Beyond, Compact. Reply is the directory's FileInfo, Items (arrays of FileInfo; with
	// Compact Data, see AppendEntry), Done is a Listing.
	OpList = "list"
	// OpTree: Path, User, Limit, Beyond, which is a path below the directory, Depth. As OpList with Compact; the Path of
	// each entry is the one below the directory.
	OpTree = "tree"
	// OpChange: Path, User, Change. No link is followed on the way, or changed. Reply is a FileChanged, Done.
	OpChange = "change"
	// OpReplace: User, Replace. Reply, then Items (arrays of Replaced), one Replaced for each file in their order; Done.
	OpReplace = "replace"
	// OpSearch: Path, User, Search. Reply is the directory's FileInfo, Items (arrays of
	// Found), Done is a Searched.
	OpSearch = "search"
	// OpMkdir: Path, User, Parents, Mode. Reply, Done.
	OpMkdir = "mkdir"
	// OpMove: Path, To, User, Overwrite. Reply, Done.
	OpMove = "move"
	// OpRemove: Path, User, Recursive. Reply, Done.
	OpRemove = "remove"
	// OpRemoveIf: OpRemove with If, in which Absent is none.
	OpRemoveIf = "remove_if"

	// OpChanges: Path, of a directory. Reply when it was looked at. After the client's End it is
	// looked at again: Items (arrays of ChangedFile), Done is a Changed. All files are told, whoever
	// may read them.
	OpChanges = "changes"
	// OpWatch: Path, of a directory; Recursive. Reply when it is watched, then Items (arrays of
	// FileEvent) until the client ends the connection, or a Failure says why it is not watched any
	// more: "not_found", where the directory is gone. All files are told, whoever may read them.
	OpWatch = "watch"
)

// Request is the payload of Call: one op, and the fields that it uses.
type Request struct {
	Op string `json:"op"`

	ID        string  `json:"id,omitempty"`
	Start     *Start  `json:"start,omitempty"`
	In        string  `json:"in,omitempty"`
	Result    *Result `json:"result,omitempty"`
	Input     *Input  `json:"input,omitempty"`
	After     int64   `json:"after,omitempty"`
	Recent    int64   `json:"recent,omitempty"`
	Lossless  bool    `json:"lossless,omitempty"`
	Signal    int     `json:"signal,omitempty"`
	Tree      bool    `json:"tree,omitempty"`
	YoungerMS int64   `json:"younger_ms,omitempty"`
	// SinceClockMS is a time as Info.ClockMS tells it, and SinceMS the same in Unix time: for an agent
	// that tells no clock, and so has the server's.
	SinceClockMS int64  `json:"since_clock_ms,omitempty"`
	SinceMS      int64  `json:"since_ms,omitempty"`
	Cause        string `json:"cause,omitempty"`
	GraceMS      int64  `json:"grace_ms,omitempty"`
	Cols         uint16 `json:"cols,omitempty"`
	Rows         uint16 `json:"rows,omitempty"`
	Port         int    `json:"port,omitempty"`
	Turn         int64  `json:"turn,omitempty"`
	Running      bool   `json:"running,omitempty"` // those that have ended may be left out

	Sudo string `json:"sudo,omitempty"` // SudoOff, SudoOn or SudoForbidden

	User      string `json:"user,omitempty"`
	AsRoot    bool   `json:"as_root,omitempty"` // a User, or a Start.User, who turns out to be root by another name may be
	Path      string `json:"path,omitempty"`    // escaped, as To
	To        string `json:"to,omitempty"`
	Offset    int64  `json:"offset,omitempty"`
	Length    int64  `json:"length,omitempty"` // 0 or less: to the end
	Size      int64  `json:"size,omitempty"`   // of an upload; -1: unknown
	Mode      uint32 `json:"mode,omitempty"`   // permission bits; 0: the default
	Limit     int    `json:"limit,omitempty"`
	Beyond    string `json:"beyond,omitempty"` // of a list: only names after this one, escaped
	Parents   bool   `json:"parents,omitempty"`
	Sync      bool   `json:"sync,omitempty"` // the answer waits until the file is on the disk
	Recursive bool   `json:"recursive,omitempty"`
	Overwrite bool   `json:"overwrite,omitempty"`

	Version bool       `json:"version,omitempty"` // of OpRead, OpStat: the FileInfo has one
	If      *Condition `json:"if,omitempty"`

	Compact bool `json:"compact,omitempty"` // of a list
	Depth   int  `json:"depth,omitempty"`   // of a tree
	// Attributes of a file that is written, in the place of those that it had.
	Attributes map[string]string `json:"attributes,omitempty"`
	Change     *Change           `json:"change,omitempty"`
	Replace    *Replace          `json:"replace,omitempty"`
	Account    *Account          `json:"account,omitempty"`

	Search *Search `json:"search,omitempty"`
	Pack   *Pack   `json:"pack,omitempty"`
	Owners bool    `json:"owners,omitempty"` // of an archive that root unpacks: files get the owners that it says
}

// Who may use sudo: nobody, for the sandbox says so, as at first; its user; nobody, for the server says so.
const (
	SudoOff       = ""
	SudoOn        = "on"
	SudoForbidden = "forbidden"
)

// Start is what to run.
type Start struct {
	Shell       string            `json:"shell,omitempty"`
	Argv        []string          `json:"argv,omitempty"`
	Cwd         string            `json:"cwd,omitempty"`
	Env         map[string]string `json:"env,omitempty"`
	User        string            `json:"user,omitempty"`
	StdinSize   int64             `json:"stdin_size,omitempty"`
	StreamStdin bool              `json:"stream_stdin,omitempty"`
	Held        bool              `json:"held,omitempty"` // it starts with the End that follows; without one, never
	TimeoutMS   int64             `json:"timeout_ms,omitempty"`
	MaxStdout   int64             `json:"max_stdout,omitempty"`
	MaxStderr   int64             `json:"max_stderr,omitempty"`
	Rolling     bool              `json:"rolling,omitempty"`  // of both streams the last bytes are kept, not the first
	Lossless    bool              `json:"lossless,omitempty"` // Rolling, and the process waits for who started it and for who attached so
	Terminal    *Terminal         `json:"terminal,omitempty"`
	Merge       bool              `json:"merge,omitempty"`  // with OpStartMerged: one pipe for stdout and stderr, which is stdout's
	Redact      [][]byte          `json:"redact,omitempty"` // with OpStartMasked or OpStartMerged: values to keep out of output and record
}

// LostPatience is how long a lossless process waits after the last connection that it waits for
// ended: a client that reconnects does so within a minute.
const LostPatience = 75 * time.Second

// Input is a piece of a streamed standard input.
type Input struct {
	Size int `json:"size,omitempty"` // at most MaxData, with OpLargeInput MaxLargeInput
	// Offset is where the piece stands in the whole input, in bytes: what was taken
	// already is not taken twice. Below zero: behind whatever was taken.
	Offset     int64 `json:"offset"`
	End        bool  `json:"end,omitempty"` // the input ends behind it
	PatienceMS int64 `json:"patience_ms,omitempty"`
}

// Taken is how far a process has taken its input.
type Taken struct {
	Bytes  int   `json:"bytes"` // of the piece, what was taken before included
	Total  int64 `json:"total"` // of the whole input
	Closed bool  `json:"closed,omitempty"`
}

// Terminal asks for a pseudo terminal.
type Terminal struct {
	Cols  uint16 `json:"cols"`
	Rows  uint16 `json:"rows"`
	Term  string `json:"term,omitempty"`
	Stays bool   `json:"stays,omitempty"` // it outlives the connection that started it
}

// Bounds of a command. They hold on both sides.
const (
	MaxArgs         = 4096
	MaxArgBytes     = 128 << 10
	MaxEnv          = 1000
	MaxEnvBytes     = 128 << 10
	MaxShell        = 128 << 10
	MaxStdin        = 8 << 20
	MaxLargeInput   = 1 << 20 // bytes of OpLargeInput
	MaxPath         = 4095
	MaxRedact       = 128 // values of Start.Redact,
	MinRedactValue  = 4   // bytes of each: what is shorter is in any text
	MaxRedactValue  = 32 << 10
	MaxRedactBytes  = MaxEnvBytes // of all together: they are variables
	MaxOutput       = 64 << 20    // the highest cap of a stream
	DefaultOutput   = 1 << 20
	MaxProcessID    = 64
	MaxRecordText   = 16 << 10 // bytes of a command that its record keeps
	DefaultListSize = 10_000
	MaxListSize     = 100_000
	MaxListBytes    = 16 << 20 // of names, links and paths of one list
)

// States of a process.
const (
	Running = "running"
	Exited  = "exited"
)

// Info is the answer to a ping.
type Info struct {
	Version   string `json:"version"`
	Protocol  int    `json:"protocol"`
	PID       int    `json:"pid"`
	Processes int    `json:"processes"`
	// Lacks is what the agent cannot do where it runs: a Lack constant, and why, for people.
	Lacks map[string]string `json:"lacks,omitempty"`
	// ClockMS is how long the agent's kernel has run. Nobody sets it, and the server's clock may differ.
	ClockMS int64 `json:"clock_ms,omitempty"`
}

// What an agent may lack.
const (
	LackKillTree       = "kill_tree"        // a kill reaches all that a command started, whatever it did
	LackOOMCause       = "oom_cause"        // a command that ran out of memory is told as such
	LackReadOnlySystem = "read_only_system" // the user cannot write to the system, whoever owns it
	LackFilter         = "filter"           // what commands may ask of the kernel is filtered
	LackPrivateLog     = "private_log"      // logs and socket are out of reach of commands
	LackRoot           = "root_user"        // commands may run as root
	LackInit           = "init"             // orphans are reaped
)

// Record is one process.
type Record struct {
	ID       string    `json:"id"`
	State    string    `json:"state"`
	Argv     []string  `json:"argv,omitempty"`
	Shell    string    `json:"shell,omitempty"`
	Clipped  bool      `json:"clipped,omitempty"` // the command was longer than MaxRecordText
	Cwd      string    `json:"cwd"`
	User     string    `json:"user"`
	Terminal bool      `json:"terminal,omitempty"`
	Rolling  bool      `json:"rolling,omitempty"`
	Started  time.Time `json:"started"`
	PID      int       `json:"pid,omitempty"`
	Result   *Result   `json:"result,omitempty"`
	LastSeq  int64     `json:"last_seq,omitempty"`
	// Streams, in the answer to OpRunIn, is the path of three pipes without its last character: 0 is the input,
	// if that is streamed, 1 and 2 are the outputs; merged ones are 1.
	Streams string `json:"streams,omitempty"`
}

// Brief returns the record without what the process wrote, as lists have it.
func (r Record) Brief() Record {
	if r.Result != nil && (r.Result.Stdout != nil || r.Result.Stderr != nil) {
		res := *r.Result
		res.Stdout, res.Stderr = nil, nil
		r.Result = &res
	}
	return r
}

// Result is how a process ended.
type Result struct {
	ExitCode        int       `json:"exit_code"`
	Signal          string    `json:"signal,omitempty"`
	Cause           string    `json:"cause,omitempty"`
	CauseDetail     string    `json:"cause_detail,omitempty"`
	DurationNS      int64     `json:"duration_ns"`
	Ended           time.Time `json:"ended"`
	StdoutBytes     int64     `json:"stdout_bytes,omitempty"`
	StderrBytes     int64     `json:"stderr_bytes,omitempty"`
	StdoutTruncated bool      `json:"stdout_truncated,omitempty"`
	StderrTruncated bool      `json:"stderr_truncated,omitempty"`
	StdoutLost      int64     `json:"stdout_lost,omitempty"` // bytes that are not in the log
	StderrLost      int64     `json:"stderr_lost,omitempty"`
	StdoutCut       string    `json:"stdout_cut,omitempty"` // why it is truncated, one of the words below
	StderrCut       string    `json:"stderr_cut,omitempty"`

	// What it wrote, values of secrets masked; not in lists.
	Stdout *excerpt.Excerpt `json:"stdout,omitempty"`
	Stderr *excerpt.Excerpt `json:"stderr,omitempty"`
}

// Why a stream is truncated.
const (
	CutLimit  = "limit"  // it is longer than the process's own limit
	CutLogs   = "logs"   // all logs of the sandbox together had no room for it
	CutDisk   = "disk"   // the disk refused it
	CutRolled = "rolled" // the log keeps the end
	CutAgent  = "agent"  // the agent ended before the process did
)

// Ending is the Done of OpStart and OpAttach.
type Ending struct {
	Result  Result `json:"result"`
	LastSeq int64  `json:"last_seq,omitempty"`
}

// Causes, as package sandbox spells them.
const (
	CauseTimeout = "timeout"
	CauseOOM     = "oom"
	CausePids    = "pids"
	CauseDisk    = "disk"
	CauseKilled  = "killed"
	CauseStopped = "stopped"
	CauseHost    = "host"
)

// Types of files.
const (
	File    = "file"
	Dir     = "dir"
	Symlink = "symlink"
	Other   = "other"
)

// VersionBytes is how many bytes a version of a file has, in hexadecimal digits, and MaxVersions bounds those of a condition.
const (
	VersionBytes = 16
	MaxVersions  = 16
)

// Condition says how a file has to be for something to be done with it: one of the three.
type Condition struct {
	Versions []string `json:"versions,omitempty"` // a regular file of one of these
	Any      bool     `json:"any,omitempty"`      // there is one
	Absent   bool     `json:"absent,omitempty"`   // there is none

	Attributes bool `json:"attributes,omitempty"` // those of the request take the place of the old file's
}

// FileInfo is one file. Name, Path and Target are escaped.
type FileInfo struct {
	Name   string    `json:"name"`
	Path   string    `json:"path,omitempty"` // empty in lists: the directory's path and the name
	Type   string    `json:"type"`
	Size   int64     `json:"size,omitempty"`
	Mode   uint32    `json:"mode"` // permission bits, with 04000, 02000 and 01000 as in stat(2)
	Mod    time.Time `json:"mod"`
	UID    uint32    `json:"uid,omitempty"`
	GID    uint32    `json:"gid,omitempty"`
	Target string    `json:"target,omitempty"` // of a symlink

	Owner      string            `json:"owner,omitempty"` // the names that the sandbox's own files have for them, if any
	Group      string            `json:"group,omitempty"`
	TargetType string            `json:"target_type,omitempty"` // of what a symlink leads to; empty: nothing that the user can see
	Attributes map[string]string `json:"attributes,omitempty"`  // with OpStat
	Version    string            `json:"version,omitempty"`     // of what a regular file holds: lower-case hexadecimal digits; empty: nobody asked, or it has none
}

// Written is the answer to OpWrite.
type Written struct {
	File    FileInfo `json:"file"`
	Created bool     `json:"created,omitempty"`
}

// Listing is the Done of OpList.
type Listing struct {
	Truncated bool  `json:"truncated,omitempty"`
	Closed    int64 `json:"closed,omitempty"` // of a tree: directories that the user may not list
}

// Error is a fault on the wire.
type Error struct {
	Code    string        `json:"code"`
	Message string        `json:"message"`
	Remedy  string        `json:"remedy,omitempty"`
	Fields  []fault.Field `json:"fields,omitempty"`
	Disk    fault.Disk    `json:"disk,omitempty"`    // with the code full
	Version string        `json:"version,omitempty"` // with the code precondition_failed: of the file as it is; empty: there is none
}
