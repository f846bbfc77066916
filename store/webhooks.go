// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package store

import "time"

// Webhooks are the webhooks of projects, and their deliveries.
type Webhooks interface {
	// Insert adds a webhook. A taken id is fault.Exists.
	Insert(w *Webhook) error
	// Get returns a webhook; fault.NotFound if there is none.
	Get(id string) (*Webhook, error)
	// List returns those of a project ("": of all), oldest first.
	List(project string) ([]*Webhook, error)
	// Update replaces all but ID, Project, Format, CreatedAt and CreatedBy; fault.NotFound if there is none.
	Update(w *Webhook) error
	// Delete removes a webhook with its deliveries; fault.NotFound if there is none.
	Delete(id string) error

	// Add adds a delivery and sets its Number.
	Add(d *Delivery) error
	// Delivery returns a delivery of a webhook; fault.NotFound if there is none.
	Delivery(webhook, id string) (*Delivery, error)
	// Deliveries returns those of a webhook with a smaller Number (0: all), newest first, at most limit; of a state, if
	// that is not empty. Their Body is not read.
	Deliveries(webhook string, before int64, state string, limit int) ([]*Delivery, error)
	// Due returns the pending delivery of a webhook with the smallest Number, which is to be sent first; nil: there is none.
	Due(webhook string) (*Delivery, error)
	// Pending returns how many deliveries of a webhook are pending.
	Pending(webhook string) (int, error)
	// Finish writes State, Attempts, NextAt, DoneAt, Status, Duration and Detail; fault.NotFound if there is none.
	Finish(d *Delivery) error
	// Prune deletes deliveries of a webhook that are not pending, all but the newest keep, at most limit.
	Prune(webhook string, keep, limit int) (int, error)
}

// Webhook is where events of a project are sent.
type Webhook struct {
	ID          string
	Project     string
	URL         string
	Format      string   // of what is sent; "": the server's own
	Types       []string // none: all
	Description string
	Secret      []byte // sealed
	OldSecret   []byte // likewise; nil: none
	OldUntil    time.Time
	Position    int64 // the Seq of the last change of which its deliveries are made
	Failures    int   // attempts that failed, since one succeeded
	DisabledAt  time.Time
	DisabledBy  string // who; "system": for its failures
	Detail      string // what the last attempt that failed was answered with
	CreatedAt   time.Time
	CreatedBy   string
	UpdatedAt   time.Time
}

// Delivery is one event on its way to a webhook.
type Delivery struct {
	Number    int64 // grows by one per delivery of the whole store
	ID        string
	Webhook   string
	EventID   string
	Type      string
	Body      []byte
	Repeats   string // the delivery that it repeats; "": none
	State     string // DeliveryPending, DeliveryDone or DeliveryFailed
	Attempts  int
	NextAt    time.Time // while it is pending
	CreatedAt time.Time
	DoneAt    time.Time
	Status    int // of the last answer; 0: none came
	Duration  time.Duration
	Detail    string // why the last attempt failed
}

// States of a delivery.
const (
	DeliveryPending = "pending"
	DeliveryDone    = "delivered"
	DeliveryFailed  = "failed"
)
