// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package engine holds the verbs: create, exec, stop, start, delete, and what
// happens to sandboxes when nobody asks. Only the engine changes a sandbox's
// record; coats (REST, MCP) ask it, drivers and the store serve it. It knows no
// driver, no database and no wire.
//
// # Four steps
//
// Every verb is: check, commit the intent, do it, commit the outcome. Between
// the two commits the record's state ends in -ing (see package sandbox), so a
// server that ends at any instant leaves a record of what was meant, and [Engine.Run]
// finishes or undoes it before the engine is ready:
//
//	creating   removed, as if never asked for
//	starting   back to stopped, with the cause that it was stopped for before
//	pausing    back to running
//	resuming   finished
//	stopping   finished
//	restoring  finished, and stopped then
//	deleting   finished
//	running    stays if its agent answers; else stopped, with the driver's cause
//	paused     stays, frozen; else stopped, with the driver's cause
//	stopped    is not looked at
//	failed     stopped, if what it missed is there again
//
// Running and paused, where the disk is gone, become failed.
//
// A command's outcome is committed behind the answer to its caller: its row is
// there since the intent, and its agent keeps the result for a repair. Who reads
// a sandbox's record or events, or takes its turn, waits for such commits first
// (package outcomes).
//
// Who asked is in the event of the outcome. For a crash in between it is kept in
// the record's StopDetail, which the repair's event quotes. A create has an event
// at each end: sandbox.created with the intent, sandbox.started with the outcome.
//
// # What is kept in memory
//
// Since nobody else writes records, the engine keeps those of running and paused
// sandboxes, and of sandboxes that a verb is at, in memory (type entry). Their revision still
// guards every write: a store that was changed behind the engine's back answers
// fault.Conflict, and the record is read anew for the next write.
//
// # Locks
//
// An entry has one turn (what may be called with it alone takes the type held), had by the lifecycle verb (start, stop, delete, update, a
// snapshot, a rollback, a clock, a repair) that is at it. Commands and file transfers take no turn: they
// hold the sandbox as in use, which keeps idleness off and nothing else. A stop
// does not wait for them; it makes them end. A pause has them wait: what was up is
// kept in the entry, frozen, and put back by the resume. Time limits of theirs do not
// count the time in between (package pausing).
//
// A snapshot is held by whoever makes something of it, reads it or makes it, see package
// hold; its deletion waits for them. A fork has the turn of its parent only while
// the parent's disk is taken, not while the forks are made of that.
//
// Order of locks: a key's turn, an entry's turn, a snapshot, entry.commitMu, then entry.mu or
// Engine.mu. Of several entries nobody has the turns or commitMu but a fork, of those
// that it has just made. Nothing blocks on the outside while it holds entry.mu or Engine.mu.
//
// # Whoever goes away
//
// Work that was begun is ended: a caller whose context ends gets its error at
// once, and the verb goes on in a goroutine of the engine with a bound of its
// own. Run does not return before all of them have.
//
// # Extensions
//
// What runs in sandboxes and is no process of theirs belongs to a package above, see type
// Extension: package code has contexts of code, and shells. It begins a use of a sandbox (type
// Use), keeps processes that are no use of it (type Background), and has the engine commit the
// intent and the outcome of what it runs.
//
// # Clocks
//
// A sandbox is in use, and not idle, while a command that was started here runs,
// waited for or not, while a terminal is open or a file on its way; a context of code or a shell,
// while a cell or a command runs in it. What a
// command left running behind it is no use, nor is a context of code in which no cell
// runs. Else idleness counts from the last
// use, from the last call by the sandbox's name (looking at its activity and
// listing apart), or from when this server began, whichever is latest: downtime
// makes no sandbox idle. So does a sliding time to live, running or not. The time of
// the last use is kept in memory and written with the next commit; since a new server
// gives every sandbox its full time, a crash loses nothing by that. Retention and
// expiry are dates and go on while the server is down.
//
// Where the host's clock is set, or the host slept, idleness counts from then: a time
// that was noted before says nothing any more about how long ago it was.
//
// Sandboxes that are stopped are read from the store a few minutes before their
// clocks expire (Engine.sweep), so that memory holds none of them.
package engine
