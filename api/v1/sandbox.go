// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// Sandbox is one sandbox as its owner sees it.
type Sandbox struct {
	ID         string   `json:"id" jsonschema:"the server's name for it, for ever: 16 lower-case letters and digits"`
	Key        *string  `json:"key" jsonschema:"the caller's own name for it, accepted wherever an id is"`
	SessionKey *string  `json:"session_key" jsonschema:"the same as key"`
	Project    string   `json:"project" jsonschema:"the project that owns it"`
	Status     string   `json:"status" jsonschema:"creating, running, pausing, paused, resuming, stopping, stopped, archiving, archived, unarchiving, starting, restoring, failed or deleting; deleted in the answer to what stopped one with auto_delete"`
	StopCause  string   `json:"stop_cause,omitempty" jsonschema:"why it is stopped, paused or failed: user, idle, ttl, host, oom, restore, restart, promote, …"`
	StopDetail string   `json:"stop_detail,omitempty" jsonschema:"the evidence for stop_cause, for people"`
	Image      string   `json:"image" jsonschema:"the image's own name"`
	AskedImage string   `json:"requested_image" jsonschema:"the image or template as it was asked for"`
	ImageNote  string   `json:"image_note,omitempty" jsonschema:"where requested_image says something else than what is inside: what it names, and what is there"`
	Digest     string   `json:"image_digest" jsonschema:"the build of the image that it runs on for ever"`
	Versions   Versions `json:"image_versions,omitempty" jsonschema:"what is really inside the image, where the answer is about one sandbox"`
	Runtime    string   `json:"runtime" jsonschema:"what isolates it"`
	Workspace  string   `json:"workspace_path" jsonschema:"where commands start and relative paths begin"`
	Account    Account  `json:"account" jsonschema:"how its user is called, and where it works"`
	User       string   `json:"user" jsonschema:"who commands run as that do not say: the account's name, or root"`

	CPUCores float64 `json:"cpu_cores" jsonschema:"CPU cores that its commands may use together"`
	MemoryMB int     `json:"memory_mb" jsonschema:"memory in MiB, without swap"`
	DiskMB   int     `json:"disk_mb" jsonschema:"disk in MiB, root changes and workspace together"`
	Pids     int     `json:"pids" jsonschema:"processes and threads"`

	Network        string            `json:"network" jsonschema:"off: loopback and nothing else; restricted: what network_policy allows; open: the public internet"`
	NetworkEnabled bool              `json:"network_enabled" jsonschema:"whether network is anything but off"`
	NetworkPolicy  *NetworkPolicy    `json:"network_policy,omitempty" jsonschema:"what it may reach, where network is not off"`
	EnvNames       []string          `json:"env_names" jsonschema:"names of the variables that its commands get; values are never shown"`
	Metadata       map[string]string `json:"metadata" jsonschema:"the caller's own labels"`

	Volumes        []Mount          `json:"volumes" jsonschema:"what it mounts"`
	Skills         []InstalledSkill `json:"skills" jsonschema:"installed on the disk that it has; what a snapshot brought along is not listed before it is installed again"`
	ParentSnapshot *string          `json:"parent_snapshot" jsonschema:"the snapshot that its disk descends from, which may be gone; null: its image"`
	ForkedFrom     *string          `json:"forked_from" jsonschema:"the sandbox that it was forked from, which may be gone; null: none"`
	Template       *SandboxTemplate `json:"template" jsonschema:"what it was made of, and what that starts; null: it is older than templates"`
	Archive        *Archive         `json:"archive,omitempty" jsonschema:"where its disk is while it is archived"`

	IdleTimeoutSeconds  int64      `json:"idle_timeout_seconds" jsonschema:"idle this long and idle_action is done; 0: never"`
	IdleAction          string     `json:"idle_action" jsonschema:"stop or pause"`
	RetentionSeconds    int64      `json:"retention_seconds" jsonschema:"stopped or paused this long and it is deleted; 0: never"`
	ArchiveAfterSeconds int64      `json:"archive_after_seconds" jsonschema:"stopped this long and it is archived; 0: never"`
	AutoDelete          bool       `json:"auto_delete" jsonschema:"deleted as soon as it is stopped"`
	ExpiresAt           *time.Time `json:"expires_at" jsonschema:"on_expiry is done then, whatever it does; null: never, or it was done, and is not done again"`
	OnExpiry            string     `json:"on_expiry" jsonschema:"delete, stop or pause"`
	TTLSeconds          *int64     `json:"ttl_seconds" jsonschema:"deleted when it was not used for this long; null: never"`
	TTLMode             *string    `json:"ttl_mode" jsonschema:"sliding where ttl_seconds holds, else absolute where expires_at does, else null"`
	AutoStart           bool       `json:"auto_start" jsonschema:"a call starts or resumes it when a clock or the host took it down"`
	AutoResume          bool       `json:"auto_resume" jsonschema:"a call resumes it also when it was paused by a caller"`
	Checkpoints         string     `json:"checkpoints" jsonschema:"off, or command: a snapshot after each command that changed a file of the workspace"`
	Sudo                bool       `json:"sudo" jsonschema:"sudo works in it: whatever its user runs can be root of the sandbox, and nothing in it is kept from its user"`

	CreatedAt         time.Time  `json:"created_at"`
	UpdatedAt         time.Time  `json:"updated_at"`
	StartedAt         *time.Time `json:"started_at" jsonschema:"the last start"`
	LastActivityAt    *time.Time `json:"last_activity_at" jsonschema:"the last call that counts as activity"`
	UnresponsiveSince *time.Time `json:"unresponsive_since" jsonschema:"it runs, and its process 1 has not answered since then: calls to it end with 503 until it does; null: it answers, as far as is known"`
	StoppedAt         *time.Time `json:"stopped_at" jsonschema:"the last stop or pause; null while it runs"`
	RunSeconds        float64    `json:"run_seconds" jsonschema:"how long it ran in all, time that it was stopped or paused left out"`

	ExecCount       int64 `json:"exec_count" jsonschema:"commands run so far"`
	ExecTotalMS     int64 `json:"exec_total_ms" jsonschema:"milliseconds that they took together"`
	BytesUploaded   int64 `json:"bytes_uploaded"`
	BytesDownloaded int64 `json:"bytes_downloaded"`

	Token *SandboxToken `json:"token,omitempty" jsonschema:"in the answer to a create that asked for one: a token that is good for this sandbox alone"`

	Differs []string `json:"differs,omitempty" jsonschema:"in the answer to a create whose key was there already: the fields in which the sandbox, which was left as it is, is not what was asked for; secrets are not compared"`
}

// Archive says where the disk of a sandbox or a snapshot is that is archived.
type Archive struct {
	Place      string    `json:"place" jsonschema:"the directory or the bucket"`
	ID         string    `json:"id" jsonschema:"its name there"`
	Digest     string    `json:"digest" jsonschema:"of its bytes there"`
	SizeBytes  int64     `json:"size_bytes" jsonschema:"what it takes there: packed, and without what its image has"`
	DiskBytes  int64     `json:"disk_bytes" jsonschema:"what it unpacks to"`
	ArchivedAt time.Time `json:"archived_at"`
}

// Ref is how to name the sandbox in a call: its key if it has one, else its id.
func (s *Sandbox) Ref() string {
	if s.Key != nil && *s.Key != "" {
		return *s.Key
	}
	return s.ID
}

// CreateSandbox asks for a sandbox. Every field is optional.
type CreateSandbox struct {
	Key        *string `json:"key,omitempty" jsonschema:"the caller's own name: 1 to 255 printable characters without a slash, unique in the project; if it exists, that sandbox is the answer (200)"`
	SessionKey *string `json:"session_key,omitempty" jsonschema:"the same as key"`
	IfExists   *string `json:"if_exists,omitempty" jsonschema:"what a key that exists means: get (the default), or refuse: 409 with the sandbox's id, which is left as it is"`
	Image      *string `json:"image,omitempty" jsonschema:"what to run on; see GET /images. It goes before the image of a template"`
	Template   *string `json:"template,omitempty" jsonschema:"a template, by its name, NAME@VERSION or id; see GET /templates. What this request says goes before what that says. A name that no template has is an image's. Left out, with image and from_snapshot: one that is for a skill of the request, or the project's default, or the server's"`
	ImageExact *bool   `json:"image_exact,omitempty" jsonschema:"true: a name that says something else than what is inside is refused; else the answer's image_note says so"`
	Runtime    *string `json:"runtime,omitempty" jsonschema:"what isolates it; see GET /info"`

	FromSnapshot *string        `json:"from_snapshot,omitempty" jsonschema:"begin with the disk of a snapshot: its id, or SANDBOX/NAME; image, limits and variables are those of the snapshot where nothing else is asked for"`
	Volumes      []MountVolume  `json:"volumes,omitzero" jsonschema:"volumes to mount, at most 16"`
	Secrets      map[string]any `json:"secrets,omitzero" jsonschema:"secrets of its own by name, at most 64: each a value, which becomes a variable of commands, or an object with value, hosts, header and format; see setSecretOf"`

	Previews *UpdatePreviews `json:"previews,omitempty" jsonschema:"who may see what programs in it serve, as for updatePreviews; the default is private"`

	Token *CreateSandboxToken `json:"token,omitempty" jsonschema:"make a token that is good for the sandbox alone, as createSandboxToken does; it is in the answer"`

	Skills []string `json:"skills,omitzero" jsonschema:"skills to install before the answer, by id or name, at most 50: all of them, or the error; a new sandbox without a key is deleted then"`

	Size     *string  `json:"size,omitempty" jsonschema:"a name for cpu_cores and memory_mb, from sizes of GET /limits: small (1 core, 1024 MiB), medium (2, 4096) and large (4, 8192) unless the operator set others; what is given of the two goes before it"`
	CPUCores *float64 `json:"cpu_cores,omitempty" jsonschema:"CPU cores, 0.05 to 64"`
	CPU      *float64 `json:"cpu,omitempty" jsonschema:"the same as cpu_cores"`
	MemoryMB *int     `json:"memory_mb,omitempty" jsonschema:"memory in MiB, 16 to 1048576"`
	DiskMB   *int     `json:"disk_mb,omitempty" jsonschema:"disk in MiB, 16 to 1048576"`
	Pids     *int     `json:"pids,omitempty" jsonschema:"processes and threads, 8 to 32768"`

	Account *Account `json:"account,omitempty" jsonschema:"how its user is called, and where it works; with from_snapshot the default is that of the snapshot's sandbox"`
	User    *string  `json:"user,omitempty" jsonschema:"who commands run as that do not say: the account (the default), or root, where the server allows that"`

	Env              map[string]string `json:"env,omitzero" jsonschema:"environment variables of every command"`
	EnvVars          map[string]string `json:"env_vars,omitzero" jsonschema:"the same as env"`
	Metadata         map[string]string `json:"metadata,omitzero" jsonschema:"labels to find it by"`
	Network          any               `json:"network,omitempty" jsonschema:"off, restricted or open; or an object with mode, allow_domains, allow_cidrs, allow_ports, allow_presets, deny_domains, deny_cidrs and learn"`
	NetworkEnabled   *bool             `json:"network_enabled,omitempty" jsonschema:"true is network open, false is off"`
	NetworkBlockAll  *bool             `json:"network_block_all,omitempty" jsonschema:"true is network off"`
	NetworkAllowList *string           `json:"network_allow_list,omitempty" jsonschema:"ranges of addresses, separated by commas: network restricted to them"`
	DomainAllowList  *string           `json:"domain_allow_list,omitempty" jsonschema:"domain names, separated by commas: network restricted to them"`
	Region           *string           `json:"region,omitempty" jsonschema:"null: this server is one machine"`

	IdleTimeoutSeconds  *int64  `json:"idle_timeout_seconds,omitempty" jsonschema:"idle this long and idle_action is done; 0: never; at most 31622400"`
	IdleAction          *string `json:"idle_action,omitempty" jsonschema:"stop (the default) or pause"`
	RetentionSeconds    *int64  `json:"retention_seconds,omitempty" jsonschema:"stopped or paused this long and it is deleted; 0: never; at most 31622400"`
	ArchiveAfterSeconds *int64  `json:"archive_after_seconds,omitempty" jsonschema:"stopped this long and it is archived: packed, and kept elsewhere until a start brings it back; 0 (the default): never; at most 31622400"`
	AutoDelete          *bool   `json:"auto_delete,omitempty" jsonschema:"delete it as soon as it is stopped, whatever stopped it"`
	TimeoutSeconds      *int64  `json:"timeout_seconds,omitempty" jsonschema:"on_expiry is done this long after its creation, whatever it does: 10 to 31622400"`
	OnExpiry            *string `json:"on_expiry,omitempty" jsonschema:"what is done then: delete (the default), stop or pause; with stop and pause it has no time to live after"`
	TTLSeconds          *int64  `json:"ttl_seconds,omitempty" jsonschema:"the same as timeout_seconds, unless ttl_mode is sliding"`
	TTLMode             *string `json:"ttl_mode,omitempty" jsonschema:"what ttl_seconds means: absolute (the default), or sliding: deleted when it was not used for so long, running or not; a sandbox may have a clock of each"`
	AutoStart           *bool   `json:"auto_start,omitempty" jsonschema:"a call starts or resumes it when a clock or the host took it down; the default is true"`
	AutoResume          *bool   `json:"auto_resume,omitempty" jsonschema:"a call resumes it also when it was paused by a caller; the default is false"`
	Checkpoints         *string `json:"checkpoints,omitempty" jsonschema:"off (the default), or command: a snapshot after each command that changed a file of the workspace"`
	Sudo                *bool   `json:"sudo,omitempty" jsonschema:"its user may run commands as its root with sudo, and so is root; the default is false; refused where the server's allow_root is false"`
}

// UpdateSandbox changes a sandbox, which may run: what is there is changed, the rest
// stays.
type UpdateSandbox struct {
	Key        *string `json:"key,omitempty" jsonschema:"another name: 1 to 255 printable characters without a slash; 409 if another sandbox of the project has it. It is found by that alone from then on, and its host name follows"`
	SessionKey *string `json:"session_key,omitempty" jsonschema:"the same as key"`

	Env      map[string]string `json:"env,omitzero" jsonschema:"replaces all variables, for commands that are begun from then on"`
	EnvVars  map[string]string `json:"env_vars,omitzero" jsonschema:"the same as env"`
	EnvSet   map[string]string `json:"env_set,omitzero" jsonschema:"variables that are added or changed; the others stay"`
	EnvUnset []string          `json:"env_unset,omitzero" jsonschema:"names of variables that are taken away"`
	Metadata map[string]string `json:"metadata,omitzero" jsonschema:"replaces all labels"`

	Size     *string  `json:"size,omitempty" jsonschema:"a name for cpu_cores and memory_mb, from sizes of GET /limits: small (1 core, 1024 MiB), medium (2, 4096) and large (4, 8192) unless the operator set others; what is given of the two goes before it"`
	CPUCores *float64 `json:"cpu_cores,omitempty" jsonschema:"CPU cores, 0.05 to 64"`
	CPU      *float64 `json:"cpu,omitempty" jsonschema:"the same as cpu_cores"`
	MemoryMB *int     `json:"memory_mb,omitempty" jsonschema:"memory in MiB, 16 to 1048576; not less than is in use"`
	Pids     *int     `json:"pids,omitempty" jsonschema:"processes and threads, 8 to 32768"`
	DiskMB   *int     `json:"disk_mb,omitempty" jsonschema:"disk in MiB, 16 to 1048576"`

	Network          any     `json:"network,omitempty" jsonschema:"off, restricted or open; or an object with mode, allow_domains, allow_cidrs, allow_ports, allow_presets, deny_domains, deny_cidrs and learn"`
	NetworkEnabled   *bool   `json:"network_enabled,omitempty" jsonschema:"true is network open, false is off, of which nothing else is: what the policy had is gone, its headers too"`
	NetworkBlockAll  *bool   `json:"network_block_all,omitempty" jsonschema:"true is network off; what the policy had is gone"`
	NetworkAllowList *string `json:"network_allow_list,omitempty" jsonschema:"ranges of addresses, separated by commas: network restricted to them; what the policy had is gone, its headers too"`
	DomainAllowList  *string `json:"domain_allow_list,omitempty" jsonschema:"domain names, separated by commas: network restricted to them; what the policy had is gone, its headers too"`

	Volumes []MountVolume `json:"volumes,omitzero" jsonschema:"replaces all that it mounts, at most 16; the sandbox must be stopped"`

	IdleTimeoutSeconds  *int64  `json:"idle_timeout_seconds,omitempty" jsonschema:"idle this long and idle_action is done; 0: never; at most 31622400"`
	IdleAction          *string `json:"idle_action,omitempty" jsonschema:"stop (the default) or pause"`
	RetentionSeconds    *int64  `json:"retention_seconds,omitempty" jsonschema:"stopped or paused this long and it is deleted; 0: never; at most 31622400"`
	ArchiveAfterSeconds *int64  `json:"archive_after_seconds,omitempty" jsonschema:"stopped this long and it is archived: packed, and kept elsewhere until a start brings it back; 0 (the default): never; at most 31622400"`
	AutoDelete          *bool   `json:"auto_delete,omitempty" jsonschema:"delete it as soon as it is stopped, whatever stopped it"`
	TimeoutSeconds      *int64  `json:"timeout_seconds,omitempty" jsonschema:"on_expiry is done this long from now: 10 to 31622400; 0: never"`
	OnExpiry            *string `json:"on_expiry,omitempty" jsonschema:"what is done then: delete, stop or pause; with stop and pause it has no time to live after"`
	TTLSeconds          *int64  `json:"ttl_seconds,omitempty" jsonschema:"the same as timeout_seconds, unless ttl_mode is sliding"`
	TTLMode             *string `json:"ttl_mode,omitempty" jsonschema:"what ttl_seconds means: absolute (the default), or sliding: deleted when it was not used for so long, running or not; a sandbox may have a clock of each"`
	AutoStart           *bool   `json:"auto_start,omitempty" jsonschema:"a call starts or resumes it when a clock or the host took it down; the default is true"`
	AutoResume          *bool   `json:"auto_resume,omitempty" jsonschema:"a call resumes it also when it was paused by a caller; the default is false"`
	Checkpoints         *string `json:"checkpoints,omitempty" jsonschema:"off (the default), or command: a snapshot after each command that changed a file of the workspace"`
	Sudo                *bool   `json:"sudo,omitempty" jsonschema:"its user may run commands as its root with sudo, and so is root; the default is false; refused where the server's allow_root is false"`

	ExtendTo *time.Time `json:"extend_to,omitempty" jsonschema:"moves expires_at later, and never earlier; one that never expires stays so"`
}

// StopSandbox is how a sandbox is stopped.
type StopSandbox struct {
	GraceSeconds *float64 `json:"grace_seconds,omitempty" jsonschema:"how long its processes may take to end by themselves after SIGTERM, 0 to 600; 0: they are killed at once; left out: the server's own, 5 as shipped"`
}

// SandboxPage is one page of a listing, newest first unless asked otherwise.
type SandboxPage struct {
	Items        []Sandbox      `json:"items"`
	Total        int            `json:"total" jsonschema:"how many match on all pages"`
	Page         *int           `json:"page" jsonschema:"the number of this page from 1; null where a cursor was given"`
	PageSize     int            `json:"page_size" jsonschema:"the most that a page holds"`
	StatusCounts map[string]int `json:"status_counts" jsonschema:"how many match by status"`
	NextCursor   *string        `json:"next_cursor" jsonschema:"give it as cursor to go on; null at the end"`
}
