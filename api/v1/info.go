// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// Info is what a server is and can do.
type Info struct {
	Version   string         `json:"version"`
	StartedAt time.Time      `json:"started_at"`
	Runtime   string         `json:"runtime" jsonschema:"what isolates sandboxes that ask for nothing else"`
	Runtimes  []Runtime      `json:"runtimes"`
	Sandboxes map[string]int `json:"sandboxes" jsonschema:"how many the project has by status"`
	Defaults  Defaults       `json:"defaults"`
	Max       Max            `json:"max" jsonschema:"the most that a sandbox may ask for, as the operator has it"`
	Pools     []Pool         `json:"pools" jsonschema:"sandboxes that run before anybody asks"`
}

// Pool is a set of ready sandboxes of one kind, for creates that ask for that kind.
type Pool struct {
	Name     string  `json:"name"`
	Image    string  `json:"image"`
	Runtime  string  `json:"runtime"`
	CPUCores float64 `json:"cpu_cores"`
	MemoryMB int     `json:"memory_mb"`
	DiskMB   int     `json:"disk_mb"`
	Pids     int     `json:"pids"`
	Min      int     `json:"min"`
	Max      int     `json:"max"`
	Target   int     `json:"target" jsonschema:"how many shall be ready now: min to max"`
	Ready    int     `json:"ready"`
	Making   int     `json:"making"`
	Hits     int64   `json:"hits" jsonschema:"creates that got one, since the server began"`
	Misses   int64   `json:"misses" jsonschema:"creates that it fits and that found none"`
}

// Runtime is one way to isolate sandboxes.
type Runtime struct {
	Name         string                `json:"name"`
	Capabilities map[string]Capability `json:"capabilities" jsonschema:"what it can do on this host"`
	Error        string                `json:"error,omitempty" jsonschema:"why it could not be asked"`
}

// Capability says whether something works, and why not.
type Capability struct {
	Supported bool   `json:"supported"`
	Reason    string `json:"reason,omitempty"`
	Remedy    string `json:"remedy,omitempty"`
}

// Defaults are the values of fields that a request leaves out.
type Defaults struct {
	CPUCores                 float64 `json:"cpu_cores"`
	MemoryMB                 int     `json:"memory_mb"`
	DiskMB                   int     `json:"disk_mb"`
	Pids                     int     `json:"pids"`
	IdleTimeoutSeconds       int64   `json:"idle_timeout_seconds"`
	RetentionSeconds         int64   `json:"retention_seconds"`
	CommandTimeoutSeconds    int64   `json:"command_timeout_seconds"`
	MaxCommandTimeoutSeconds int64   `json:"max_command_timeout_seconds"`
	RootAllowed              bool    `json:"root_allowed" jsonschema:"whether commands may run as root of their sandbox"`
}

// Max is the most that a sandbox may ask for.
type Max struct {
	CPUCores float64 `json:"cpu_cores"`
	MemoryMB int     `json:"memory_mb"`
	DiskMB   int     `json:"disk_mb"`
	Pids     int     `json:"pids"`
}

// SandboxLimits is what may be asked for.
type SandboxLimits struct {
	Sizes    []Size           `json:"sizes" jsonschema:"what the field size stands for"`
	Bounds   map[string]Bound `json:"bounds" jsonschema:"the least and the most of each field"`
	Networks []string         `json:"networks" jsonschema:"what the field network may be"`
	Presets  []string         `json:"network_presets" jsonschema:"what network.allow_presets may name"`
	Default  NetworkPolicy    `json:"default_network" jsonschema:"of a sandbox that is created without network, before its presets are resolved"`
	Regions  []string         `json:"regions" jsonschema:"none: this server is one machine"`
	Project  *Project         `json:"project,omitempty" jsonschema:"the caller's: what it may have, has and has left"`
}

// Size is a name for limits.
type Size struct {
	Name     string  `json:"name"`
	CPUCores float64 `json:"cpu_cores"`
	MemoryMB int     `json:"memory_mb"`
}

// Bound is the least and the most of a number, both allowed.
type Bound struct {
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
	Unit string  `json:"unit"`
}
