// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package kernel runs cells of code in contexts whose variables live on: Python,
// JavaScript, TypeScript and bash. It has two halves. The kernels, in program/,
// are programs that run inside a sandbox as ordinary commands of its user. A
// [Session] is the server's half: it speaks to one kernel over its three
// standard streams, which a [Transport] carries. The package knows no sandbox, agent or
// engine.
//
// A kernel is started by [Command] and needs nothing of ours in the sandbox: its
// text is the first thing that it reads. Python needs 3.9, JavaScript Node 18,
// TypeScript Node 22.13, bash 4.4; where that is missing, Start is
// fault.Unsupported. Beyond the standard library nothing is needed;
// what is installed (matplotlib, pandas, IPython.display) is met when a cell imports it.
//
// # Trust
//
// A kernel shares its process with the cells, so a cell can say anything in its
// name: fake results, never end, or end what runs on. That harms only that
// context. Every message is bounded and checked here, as the constants say, before
// it is passed on; what breaks the protocol ends the session ([Dead]) with
// fault.Unavailable.
//
// # What goes in
//
// Python and Node are given a line "size token" (Node the language, too) and their text; then
// each request is its length in decimal, a newline, and JSON:
//
//	{"op":"run","id":3,"code":"1+1","env":{"NAME":"value"},"argv":["one"]}
//	{"op":"ping","id":3}
//	{"op":"interrupt","id":3}                   Node only, beside the signal
//
// A bash reads commands as ever: the assignment of the token, the text, and for each
// request a line that calls a function of it. A cell is one quoted word of such a line.
//
// # What comes out
//
// stdout and stderr carry what the cells and their children write, as it is and
// when it is written: nothing forwards it, so C extensions, background jobs and
// crashing programs are no special case. Messages stand between, in chunks:
//
//	[0x1f][32 hex digits: the token][":"]["+" or "."][4 hex digits: n][n bytes]
//
// A chunk is at most 4096 bytes with its head, so that one write of it is not torn apart by
// writes of others. "+" says that the message goes on in the next chunk, "." that it is
// whole; it is a JSON object. The token is random for each context, and no environment,
// argument or printed variable holds it with its first byte, so that no program writes
// it by accident. Everything before the first message of a stream is dropped.
//
//	{"t":"ready","version":"3.11.2"}            cells can come
//	{"t":"refuse","reason":"typescript","version":"20.1.0"}   this program cannot do it
//	{"t":"start","id":3,"count":3}              the cell was read and begins
//	{"t":"result","id":3,"main":true,"data":{"text/plain":"2"},"cut":false,"omitted":["image/png"]}
//	{"t":"error","id":3,"name":"ValueError","value":"…","traceback":["…"]}
//	{"t":"sync","id":3}                         on stderr: what the cell wrote there is before it; 0: with ready
//	{"t":"end","id":3,"status":"ok","exit":0,"dropped":0}     the same for stdout, and the cell is over
//	{"t":"pong","id":3}                         answers ping, when no cell runs
//
// A status is ok, error or interrupted; exit is bash's alone. Messages with other ids are of
// cells that are no more, and skipped, as are unknown types.
//
// Order holds within a stream: output comes before the result that was made
// after it. Between stdout and stderr it holds as far as the transport's does. Output that
// comes while no cell runs, from what a cell left running, is given to the next
// cell's handler.
//
// # Cells
//
// A cell has no stdin, but for bash's that are given one. An interrupt is SIGINT to the kernel and what it started, as Ctrl-C in
// a terminal; variables stay. A kernel that ends (os._exit, `exit` in bash, a
// crash) makes the cell's status [Ended], with how it ended; the session is [Dead] then, and
// a new one is a restart.
//
//	python       IPython's ways: the last expression's value, rich forms (_repr_html_ … and
//	             _repr_mimebundle_), display(), !command, %magic and %%magic, top-level await,
//	             sys.exit as an error, figures of matplotlib as images and charts, data frames
//	             of pandas and polars as columns (program/charts.py, run when one is met)
//	javascript   the browser's console's ways: names can be declared anew, top-level await, static
//	             imports, the last value by util.inspect or by its Symbol.for('Jupyter.display')
//	typescript   the same after its types are taken out; they are not checked
//	bash         a shell that has read no dot files, is interactive ($- has an i) but shows no prompt and
//	             no notices; what ends a login shell ends it; redirections by exec hold to the
//	             cell's end; it has descriptors 197 to 199 for itself
//
// JavaScript that computes without end in a callback, after an await, is ended by
// an interrupt a second later, and Node may end by that, too: [Ended].
package kernel
