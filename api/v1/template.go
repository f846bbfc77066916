// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// Template is a version of a template. It never changes, but for what its steps make of it.
type Template struct {
	ID      string `json:"id" jsonschema:"tmpl_…: this version, for ever"`
	Name    string `json:"name"`
	Version int    `json:"version" jsonschema:"from 1; none is given twice"`
	Server  bool   `json:"server" jsonschema:"all projects have it; else the caller's"`
	Default bool   `json:"default" jsonschema:"a create that names no image and no template gets the newest of its name"`
	Origin  string `json:"origin,omitempty" jsonschema:"configuration: it is of the server's; sandbox: it was made for a sandbox, whose image is built or pulled"`

	Status   string           `json:"status" jsonschema:"building, ready or failed"`
	Inactive bool             `json:"inactive" jsonschema:"nothing is made of it until it is active again"`
	Failure  *TemplateFailure `json:"failure,omitempty" jsonschema:"why it failed"`

	Description  string            `json:"description,omitempty"`
	Image        string            `json:"image,omitempty" jsonschema:"missing: the server's default image"`
	ImageDigest  string            `json:"image_digest,omitempty" jsonschema:"the image that its Dockerfile made"`
	Dockerfile   string            `json:"dockerfile,omitempty" jsonschema:"what made its image"`
	FromSnapshot string            `json:"from_snapshot,omitempty" jsonschema:"the snapshot that its sandboxes begin with: it was given, or its steps made it"`
	FromSandbox  string            `json:"from_sandbox,omitempty" jsonschema:"the sandbox of which that snapshot was taken for it"`
	CPUCores     *float64          `json:"cpu_cores,omitempty" jsonschema:"limits that are missing are left to the create and to the server"`
	MemoryMB     *int              `json:"memory_mb,omitempty"`
	DiskMB       *int              `json:"disk_mb,omitempty"`
	Pids         *int              `json:"pids,omitempty"`
	Env          map[string]string `json:"env"`
	Account      *Account          `json:"account,omitempty" jsonschema:"how the user of its sandboxes is called; missing: what the create says"`
	User         string            `json:"user,omitempty" jsonschema:"who commands run as that do not say; missing: what the create says"`
	Network      *NetworkPolicy    `json:"network,omitempty" jsonschema:"missing: what the create or the server says"`
	Volumes      []MountVolume     `json:"volumes"`
	Start        string            `json:"start,omitempty" jsonschema:"the command that runs in a sandbox from each start on"`
	Ready        *ReadyProbe       `json:"ready,omitempty" jsonschema:"when that is ready; missing: at once"`
	ForSkills    []string          `json:"for_skills" jsonschema:"a create with one of these skills, and without an image or a template, gets it"`
	Steps        []string          `json:"steps" jsonschema:"the commands that made its disk, as root"`

	CreatedAt time.Time `json:"created_at"`
	CreatedBy string    `json:"created_by" jsonschema:"the token's name"`
}

// ReadyProbe says when what a template starts is ready.
type ReadyProbe struct {
	Command         string   `json:"command,omitempty" jsonschema:"it is ready once this ends with 0; or:"`
	Port            int      `json:"port,omitempty" jsonschema:"once something listens on this TCP port"`
	IntervalSeconds *float64 `json:"interval_seconds,omitempty" jsonschema:"from one look to the next; the default is 0.5"`
	TimeoutSeconds  *float64 `json:"timeout_seconds,omitempty" jsonschema:"after it, it is not ready; the default is 60, at most 300"`
}

// TemplateFailure is the step of a template that failed.
type TemplateFailure struct {
	Step     int    `json:"step" jsonschema:"from 1; 0: none of them"`
	Command  string `json:"command,omitempty"`
	ExitCode int    `json:"exit_code"`
	Output   string `json:"output,omitempty" jsonschema:"the last that it wrote"`
	Reason   string `json:"reason"`
}

// TemplateList is templates: the project's by name, newest version first, then the server's.
type TemplateList struct {
	Items []Template `json:"items"`
	Total int        `json:"total"`
}

// CreateTemplate asks for a version of a template.
type CreateTemplate struct {
	Name        string  `json:"name" jsonschema:"1 to 64 letters, digits, dots, dashes, underscores and colons; the same name again is its next version"`
	Server      bool    `json:"server,omitempty" jsonschema:"for all projects; needs the scope server:admin"`
	Default     bool    `json:"default,omitempty" jsonschema:"make it the project's default, or with server the server's"`
	Description *string `json:"description,omitempty" jsonschema:"at most 1024 bytes"`

	Image        *string `json:"image,omitempty" jsonschema:"what its sandboxes run on; left out: the server's default image"`
	Base         *string `json:"base,omitempty" jsonschema:"the same as image"`
	FromSnapshot *string `json:"from_snapshot,omitempty" jsonschema:"a snapshot that has a name, by its id or as SANDBOX/NAME: the disk that its sandboxes begin with; it is not deleted before the template"`

	Size     *string  `json:"size,omitempty" jsonschema:"a name for cpu_cores and memory_mb, from sizes of GET /limits: small (1 core, 1024 MiB), medium (2, 4096) and large (4, 8192) unless the operator set others; what is given of the two goes before it"`
	CPUCores *float64 `json:"cpu_cores,omitempty" jsonschema:"CPU cores, 0.05 to 64"`
	MemoryMB *int     `json:"memory_mb,omitempty" jsonschema:"memory in MiB, 16 to 1048576"`
	DiskMB   *int     `json:"disk_mb,omitempty" jsonschema:"disk in MiB, 16 to 1048576"`
	Pids     *int     `json:"pids,omitempty" jsonschema:"processes and threads, 8 to 32768"`

	Account *Account `json:"account,omitempty" jsonschema:"how the user of its sandboxes is called, and where it works, where the create does not say"`
	User    *string  `json:"user,omitempty" jsonschema:"who commands run as that do not say: the account, or root; likewise"`

	Env       map[string]string `json:"env,omitzero" jsonschema:"environment variables of every command; they are shown to who reads the template, so that secrets are no part of it"`
	Network   any               `json:"network,omitempty" jsonschema:"off, restricted or open; or an object with mode, allow_domains, allow_cidrs, allow_ports, allow_presets, deny_domains, deny_cidrs and learn"`
	Volumes   []MountVolume     `json:"volumes,omitzero" jsonschema:"volumes to mount, at most 16"`
	Start     *string           `json:"start,omitempty" jsonschema:"a shell command that runs as the sandbox's user from each start on"`
	Ready     *ReadyProbe       `json:"ready,omitempty" jsonschema:"when that is ready: a create waits for it"`
	ForSkills []string          `json:"for_skills,omitzero" jsonschema:"names of skills, at most 50: a create with one of them, and without an image or a template, gets it"`
	Steps     []string          `json:"steps,omitzero" jsonschema:"shell commands, at most 64, done in order as root in a sandbox of the image; the disk that they make is what its sandboxes begin with. The answer is then 202 and building"`
}

// UpdateTemplate changes which template is a default, and what is active. What a template says never changes.
type UpdateTemplate struct {
	Default  *bool `json:"default,omitempty" jsonschema:"whether a create that names no image and no template gets the newest of its name"`
	Server   bool  `json:"server,omitempty" jsonschema:"as the server's default, for all projects that have none of their own"`
	Inactive *bool `json:"inactive,omitempty" jsonschema:"whether nothing is made of it from now on: of a version, or by its name of all of them"`
}

// SandboxTemplate says what a sandbox was made of.
type SandboxTemplate struct {
	ID       *string       `json:"id" jsonschema:"null: of no template"`
	Name     *string       `json:"name"`
	Version  *int          `json:"version"`
	ChosenBy string        `json:"chosen_by" jsonschema:"explicit: the request named it, or an image or a snapshot; skills: it is for a skill of the request; project, server: their default; fallback: the server's default image"`
	Start    *SandboxStart `json:"start,omitempty" jsonschema:"what it starts"`
}

// SandboxStart is what runs in a sandbox from each start on, as of the last one.
type SandboxStart struct {
	Command   string  `json:"command"`
	ProcessID *string `json:"process_id" jsonschema:"of the process, as of the last start; null: it was not started yet"`
	Ready     *bool   `json:"ready" jsonschema:"null: it is not known yet"`
	Reason    string  `json:"reason,omitempty" jsonschema:"why it is not ready"`
	Output    string  `json:"output,omitempty" jsonschema:"the last that it wrote, where it is not ready"`
}

// ImagePools is the pools of an image: sandboxes that run before anybody asks.
type ImagePools struct {
	Image string      `json:"image"`
	Ready int         `json:"ready" jsonschema:"sandboxes of it that are ready, of all pools"`
	Pools []ImagePool `json:"pools" jsonschema:"those of the image, and the one that follows the last creates"`
}

// ImagePool is a pool.
type ImagePool struct {
	Pool
	Refill   int    `json:"refill" jsonschema:"how many are made at a time"`
	Template string `json:"template,omitempty" jsonschema:"whose image and limits it has"`
	Recent   bool   `json:"recent" jsonschema:"it follows the last creates, whatever their image"`
}

// UpdateImagePool changes a pool, from now on and also after a restart of the server.
type UpdateImagePool struct {
	Pool     *string  `json:"pool,omitempty" jsonschema:"its name; left out: the template's, or the image's. One that there is not is made"`
	Template *string  `json:"template,omitempty" jsonschema:"a template for all projects, of this image, whose limits it has"`
	Size     *string  `json:"size,omitempty" jsonschema:"a name for cpu_cores and memory_mb, from sizes of GET /limits: small (1 core, 1024 MiB), medium (2, 4096) and large (4, 8192) unless the operator set others; what is given of the two goes before it. Limits that are left out stay; a template's go with it"`
	CPUCores *float64 `json:"cpu_cores,omitempty" jsonschema:"CPU cores, 0.05 to 64"`
	MemoryMB *int     `json:"memory_mb,omitempty" jsonschema:"memory in MiB, 16 to 1048576"`
	DiskMB   *int     `json:"disk_mb,omitempty" jsonschema:"disk in MiB, 16 to 1048576"`
	Pids     *int     `json:"pids,omitempty" jsonschema:"processes and threads, 8 to 32768"`
	Min      *int     `json:"min,omitempty" jsonschema:"so many are kept ready"`
	Max      *int     `json:"max,omitempty" jsonschema:"so many where more are asked for, at most 1000; 0: none"`
	Refill   *int     `json:"refill,omitempty" jsonschema:"so many are made at a time"`
}
