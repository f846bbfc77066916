// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// SandboxStats is what a sandbox uses.
type SandboxStats struct {
	ID          string        `json:"id"`
	Key         *string       `json:"key"`
	Project     string        `json:"project"`
	Status      string        `json:"status"`
	CPULimit    float64       `json:"cpu_limit"`
	MemoryLimit int64         `json:"memory_limit_bytes"`
	DiskLimit   int64         `json:"disk_limit_bytes"`
	TaskLimit   int           `json:"task_limit"`
	Now         *StatsSample  `json:"now" jsonschema:"at most a second old; null where it is not up, or its runtime counts nothing"`
	History     []StatsSample `json:"history" jsonschema:"the last hour by the minute, oldest first; it is lost when the sandbox stops, and when the server does"`

	Processes *StatsProcesses `json:"processes,omitempty" jsonschema:"only with processes"`
}

// StatsProcesses is what runs in a sandbox, as its host tells of it.
type StatsProcesses struct {
	Items []StatsProcess `json:"items" jsonschema:"who uses most first: processors, then memory"`
	Total int            `json:"total" jsonschema:"how many there are, of which items may hold fewer"`
}

// StatsProcess is one process.
type StatsProcess struct {
	PID         int     `json:"pid" jsonschema:"inside the sandbox"`
	ParentPID   int     `json:"parent_pid" jsonschema:"inside the sandbox; 0: none that runs"`
	Name        string  `json:"name" jsonschema:"which the process chose: any text"`
	State       string  `json:"state" jsonschema:"running, sleeping, waiting (for a disk), stopped, zombie or other"`
	CPUs        float64 `json:"cpus" jsonschema:"processors in use since the reading before, or since it began"`
	CPUSeconds  float64 `json:"cpu_seconds" jsonschema:"since it began"`
	AgeSeconds  float64 `json:"age_seconds"`
	MemoryBytes int64   `json:"memory_bytes" jsonschema:"its own and shared, that are in memory"`
	Threads     int     `json:"threads"`
}

// StatsSample is what was used at one time. What the host does not count is null.
type StatsSample struct {
	Time            time.Time `json:"time"`
	CPUs            *float64  `json:"cpus" jsonschema:"processors in use since the sample before, or since the start"`
	CPUSeconds      *float64  `json:"cpu_seconds" jsonschema:"since the start; null in the history"`
	MemoryBytes     *int64    `json:"memory_bytes" jsonschema:"the page cache included, as the limit counts it"`
	MemoryPeakBytes *int64    `json:"memory_peak_bytes" jsonschema:"since the start; null in the history"`
	DiskBytes       *int64    `json:"disk_bytes" jsonschema:"what it wrote, without the image and volumes"`
	Tasks           *int64    `json:"tasks" jsonschema:"processes and threads"`

	NetworkInRate   *float64 `json:"network_in_bytes_per_second" jsonschema:"got from other hosts, since the sample before: what TCP and UDP carry, without their headers; null in the first sample, and where the runtime has no network"`
	NetworkOutRate  *float64 `json:"network_out_bytes_per_second" jsonschema:"sent to other hosts; likewise"`
	NetworkInBytes  *int64   `json:"network_in_bytes" jsonschema:"got since the start, or that of the server; null in the history"`
	NetworkOutBytes *int64   `json:"network_out_bytes" jsonschema:"sent; likewise"`
}

// StatsList is what sandboxes that are up use, each and together.
type StatsList struct {
	Items   []SandboxStats `json:"items"`
	Total   StatsTotal     `json:"total" jsonschema:"of all of items"`
	History []StatsSample  `json:"history" jsonschema:"what they used together in the last hour, by the minute, oldest first; only with history=true"`
	Host    *HostStats     `json:"host" jsonschema:"the whole host, the server and all else on it included; for the server's own administrator's token, else null"`
}

// StatsTotal is what sandboxes use together. What the host counts of none of them is null.
type StatsTotal struct {
	Sandboxes   int      `json:"sandboxes" jsonschema:"that were counted"`
	CPUs        *float64 `json:"cpus"`
	MemoryBytes *int64   `json:"memory_bytes"`
	DiskBytes   *int64   `json:"disk_bytes"`
	Tasks       *int64   `json:"tasks"`

	NetworkInRate  *float64 `json:"network_in_bytes_per_second"`
	NetworkOutRate *float64 `json:"network_out_bytes_per_second"`
}

// HostStats is what the host uses.
type HostStats struct {
	CPULimit    int           `json:"cpu_limit" jsonschema:"processors there are"`
	MemoryLimit int64         `json:"memory_limit_bytes"`
	DiskLimit   int64         `json:"disk_limit_bytes" jsonschema:"of the disk that the data directory is on"`
	TaskLimit   int64         `json:"task_limit"`
	Now         StatsSample   `json:"now" jsonschema:"its memory is what programs cannot get any more; its cpus are null until there are two readings"`
	History     []StatsSample `json:"history" jsonschema:"the last hour by the minute, oldest first; only with history=true"`
}

// StatsEvent is the event of a stream that follows: SandboxStats of one sandbox, or StatsList. The stream has no end of its own
// but an error.
const StatsEvent = "stats"
