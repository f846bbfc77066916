// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// Setting is something of the server that can be changed without a restart.
type Setting struct {
	Name      string     `json:"name"`
	About     string     `json:"about"`
	Value     any        `json:"value" jsonschema:"a number, a text, true or false, or a list of texts"`
	Source    string     `json:"source" jsonschema:"where the value comes from: default, file, environment, flag, or set by a call, which goes before the others"`
	Holds     string     `json:"holds" jsonschema:"for what: new, which is what is made from the change on, or all"`
	Otherwise any        `json:"otherwise" jsonschema:"the value if what a call set is taken back"`
	ChangedAt *time.Time `json:"changed_at,omitempty" jsonschema:"of what a call set"`
	ChangedBy string     `json:"changed_by,omitempty" jsonschema:"the token's name"`
}

// SettingList is all settings.
type SettingList struct {
	Items []Setting `json:"items"`
}

// ConfiguredValue is a key of the server's configuration, as the server started with it.
type ConfiguredValue struct {
	Key     string `json:"key" jsonschema:"as the configuration file has it, with dots between sections"`
	Value   any    `json:"value" jsonschema:"as the server took it: a text, a number, true or false, a list or an object; of what is secret [redacted] in place of each text"`
	Secret  bool   `json:"secret" jsonschema:"whether something of it is secret, or would be"`
	Source  string `json:"source" jsonschema:"where the value comes from: default, file, environment or flag"`
	Setting string `json:"setting,omitempty" jsonschema:"the setting that begins with this value, which is changed without a restart; what has none needs one"`
}

// Configuration is the server's configuration.
type Configuration struct {
	Items []ConfiguredValue `json:"items"`
}

// UpdateSettings changes settings: each field that is there, all of them or none.
type UpdateSettings struct {
	IdleTimeoutSeconds    *int64    `json:"idle_timeout_seconds,omitempty" jsonschema:"0: never"`
	RetentionSeconds      *int64    `json:"retention_seconds,omitempty" jsonschema:"0: for ever"`
	CommandTimeoutSeconds *int64    `json:"command_timeout_seconds,omitempty"`
	MaxSandboxes          *int64    `json:"max_sandboxes,omitempty" jsonschema:"of a project that is made without quotas; 0: any number"`
	AllowRoot             *bool     `json:"allow_root,omitempty"`
	DefaultImage          *string   `json:"default_image,omitempty" jsonschema:"empty: the catalogue's first"`
	AllowedImages         *[]string `json:"allowed_images,omitempty" jsonschema:"names and patterns; empty: all"`
	ExactImages           *bool     `json:"exact_images,omitempty"`
	AllowedVariables      *[]string `json:"allowed_variables,omitempty" jsonschema:"names and patterns; empty: all"`
	MaxNetwork            *string   `json:"max_network,omitempty" jsonschema:"off, restricted or open"`
	DefaultNetwork        *string   `json:"default_network,omitempty" jsonschema:"off, open, or presets, names and addresses with commas"`
	MaxPreviews           *string   `json:"max_previews,omitempty" jsonschema:"private, or public: sandboxes may show ports to everyone"`
	PoolsEnabled          *bool     `json:"pools_enabled,omitempty" jsonschema:"whether the pools keep sandboxes ready"`
	Pools                 *[]string `json:"pools,omitempty" jsonschema:"the pools, each by the words of the file, like image=python size=small min=2 max=8; empty: none but those that calls made or changed by name"`
	LogLevel              *string   `json:"log_level,omitempty" jsonschema:"debug, info, warn or error"`
	LogRequests           *bool     `json:"log_requests,omitempty"`
	LogMCP                *bool     `json:"log_mcp,omitempty"`
	LogTools              *bool     `json:"log_tools,omitempty"`

	Unset []string `json:"unset,omitempty" jsonschema:"names of settings of which what a call set is taken back: the flag, the environment, the file or the default holds again"`
}

// SandboxSettings are the settings in the form of the MCP Gateway.
type SandboxSettings struct {
	ProviderType            string   `json:"provider_type" jsonschema:"the default runtime"`
	WarmPoolEnabled         bool     `json:"warm_pool_enabled" jsonschema:"whether pools keep sandboxes ready, and there is one"`
	DefaultMaxPerUser       int64    `json:"default_max_per_user" jsonschema:"sandboxes of a project that is made without quotas; 0: any number"`
	IdleTimeoutSeconds      int64    `json:"idle_timeout_seconds" jsonschema:"of new sandboxes; 0: never"`
	StoppedRetentionSeconds int64    `json:"stopped_retention_seconds" jsonschema:"of all sandboxes for which none was asked; 0: for ever"`
	ConfigFallbackImage     string   `json:"config_fallback_image" jsonschema:"the default image where no call has set one"`
	DBDefaultImage          *string  `json:"db_default_image" jsonschema:"the default image that a call has set"`
	EnvAllowlist            []string `json:"env_allowlist" jsonschema:"names and patterns of variables that requests may set; empty: all"`
	DBActiveImages          []string `json:"db_active_images" jsonschema:"names and patterns of images that sandboxes may have; empty: all"`
}

// UpdateSandboxSettings changes settings in the form of the MCP Gateway.
type UpdateSandboxSettings struct {
	WarmPoolEnabled         *bool     `json:"warm_pool_enabled,omitempty" jsonschema:"true: where no pool is, one of the default image is made"`
	DefaultMaxPerUser       *int64    `json:"default_max_per_user,omitempty"`
	IdleTimeoutSeconds      *int64    `json:"idle_timeout_seconds,omitempty"`
	StoppedRetentionSeconds *int64    `json:"stopped_retention_seconds,omitempty"`
	DBDefaultImage          *string   `json:"db_default_image,omitempty" jsonschema:"empty: the fallback again"`
	EnvAllowlist            *[]string `json:"env_allowlist,omitempty"`
	DBActiveImages          *[]string `json:"db_active_images,omitempty"`
}
