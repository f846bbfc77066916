// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// Overview is what a project, or the whole server, is at.
type Overview struct {
	Project     *string        `json:"project" jsonschema:"null: all"`
	Time        time.Time      `json:"time"`
	StartedAt   time.Time      `json:"started_at" jsonschema:"of the server"`
	Sandboxes   map[string]int `json:"sandboxes" jsonschema:"how many there are, by status"`
	Use         *OverviewUse   `json:"use" jsonschema:"what sandboxes use together that are up; null in the first minute of the server"`
	Hour        Hour           `json:"hour"`
	Host        *HostStats     `json:"host" jsonschema:"the whole host, the server and all else on it included, with its last hour; for the server's own administrator's token, else null"`
	OpenFiles   *OpenFiles     `json:"open_files" jsonschema:"likewise"`
	Stores      []StoreStats   `json:"stores" jsonschema:"where sandboxes have their disks; for the server's own administrator's token, else none"`
	RecordsFull *string        `json:"records_full" jsonschema:"why no new work is recorded; null: it is, or the caller does not run the server"`
}

// OverviewUse is what sandboxes use together. What the host counts of none of them is null.
type OverviewUse struct {
	Time time.Time `json:"time" jsonschema:"at most a minute ago"`
	StatsTotal
}

// OpenFiles is how many files are open, of how many that may be.
type OpenFiles struct {
	Server      int64 `json:"server" jsonschema:"of the server's process"`
	ServerLimit int64 `json:"server_limit"`
	Host        int64 `json:"host"`
	HostLimit   int64 `json:"host_limit"`
}

// StoreStats is the place where the sandboxes of a runtime have their disks.
type StoreStats struct {
	Runtime       string  `json:"runtime"`
	SizeBytes     int64   `json:"size_bytes"`
	FreeBytes     int64   `json:"free_bytes" jsonschema:"its reserve included"`
	RoomBytes     int64   `json:"room_bytes" jsonschema:"what sandboxes may still take together"`
	HostSizeBytes int64   `json:"host_size_bytes" jsonschema:"of the host's disk, on which it is"`
	HostFreeBytes int64   `json:"host_free_bytes"`
	Full          *string `json:"full" jsonschema:"why nothing new is begun; null: it is"`
	Failed        *string `json:"failed" jsonschema:"why no disk can be used; null: they can"`
}

// Hour is what happened in the last hour, or since the server began. It is kept in memory: a restart of the server begins it anew.
type Hour struct {
	Since    time.Time  `json:"since"`
	Counted  bool       `json:"counted" jsonschema:"false: more projects than 100 are busy, and this one is not counted by itself; all figures are zero"`
	Creates  int64      `json:"creates" jsonschema:"sandboxes that were made"`
	Commands int64      `json:"commands" jsonschema:"that ended"`
	Refused  int64      `json:"refused_connections" jsonschema:"connections, and questions for names, that sandboxes' network policies did not let through"`
	Failures []Failures `json:"failures" jsonschema:"creates and commands that failed, by cause"`
	// CreateMS and ExecMS are times that callers waited.
	CreateMS Percentiles `json:"create_ms" jsonschema:"how long callers waited for a new sandbox"`
	ExecMS   Percentiles `json:"exec_ms" jsonschema:"how long callers waited for a command"`
	Minutes  []Minute    `json:"minutes" jsonschema:"those in which something happened, oldest first; the last one may go on"`
}

// Failures are so many with one cause.
type Failures struct {
	Of    string `json:"of" jsonschema:"create or command"`
	Cause string `json:"cause" jsonschema:"of a command that ended: exit (another exit code than 0), timeout, oom, pids, disk, killed, stopped, host and the like; of what did not begin: the error's code, such as full or exhausted"`
	Count int64  `json:"count"`
}

// Percentiles are times in milliseconds, within an eighth. Null: there is none.
type Percentiles struct {
	Count int64    `json:"count"`
	P50   *float64 `json:"p50"`
	P95   *float64 `json:"p95"`
}

// Minute is what happened in one.
type Minute struct {
	Time     time.Time   `json:"time" jsonschema:"its beginning"`
	Creates  int64       `json:"creates"`
	Commands int64       `json:"commands"`
	Failures int64       `json:"failures"`
	Refused  int64       `json:"refused_connections"`
	CreateMS Percentiles `json:"create_ms"`
	ExecMS   Percentiles `json:"exec_ms"`
}
