// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire

import "time"

// Secret is a secret of an organization, without its value.
type Secret struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Description string    `json:"description,omitempty"`
	Placeholder string    `json:"placeholder"` // what programs have in its place
	Hosts       []string  `json:"hosts"`
	CreatedAt   time.Time `json:"createdAt"`
	UpdatedAt   time.Time `json:"updatedAt"`
}

// CreateSecret is a new one.
type CreateSecret struct {
	Name        string   `json:"name"`
	Value       string   `json:"value"`
	Description *string  `json:"description"`
	Hosts       []string `json:"hosts"`
}

// UpdateSecret is what shall change of one; nil: it stays.
type UpdateSecret struct {
	Value       *string  `json:"value"`
	Description *string  `json:"description"`
	Hosts       []string `json:"hosts"`
}

// SecretPage is a part of a list of them.
type SecretPage struct {
	Items      []Secret `json:"items"`
	Total      int      `json:"total"`
	NextCursor *string  `json:"nextCursor"` // null: it is the last
}

// SandboxSecrets are those that a sandbox shall have: a variable's name to a secret's, each.
type SandboxSecrets struct {
	Secrets []map[string]string `json:"secrets"`
}
