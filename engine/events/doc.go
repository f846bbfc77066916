// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package events tells what changed of the records of sandboxes, snapshots, volumes, templates and images, in the order of the
// commits, to whoever follows a project.
//
// A store that wraps the server's own adds, in the transaction that changes a record, a row with the record as it is
// then: by every verb, and none has to think of it. Followers read these rows, so that an event is neither told of what
// was not committed, nor lost where a server ends; who was away goes on behind the event that it saw last. What is a use
// of a sandbox alone, such as a command, changes no record here.
//
// Images are no records: what is on disk of them is compared with what was told last.
package events
