// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire

// Pool is sandboxes that are kept ready.
type Pool struct {
	ID             string            `json:"id"`
	OrganizationID string            `json:"organizationId"`
	Snapshot       string            `json:"snapshot"`
	Target         string            `json:"target"`
	Pool           int               `json:"pool"`        // how many shall be ready
	CurrentSize    int               `json:"currentSize"` // how many are
	CPU            int               `json:"cpu"`
	Memory         int               `json:"mem"`  // GiB, rounded up
	Disk           int               `json:"disk"` // GiB, rounded up
	OSUser         string            `json:"osUser"`
	Env            map[string]string `json:"env"`       // always empty
	CreatedAt      string            `json:"createdAt"` // empty: nobody knows; likewise the next
	UpdatedAt      string            `json:"updatedAt"`
}

// CreatePool is a new one.
type CreatePool struct {
	Snapshot string   `json:"snapshot"`
	Pool     *float64 `json:"pool"`
	Target   *string  `json:"target"`
}

// UpdatePool is what one shall be.
type UpdatePool struct {
	Pool *float64 `json:"pool"`
}
