// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package orkestr

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"time"

	"sandpit.dev/api/orkestrterms"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine/events"
	"sandpit.dev/sandbox"
	"sandpit.dev/template"
	"sandpit.dev/webhooks"
)

// WebhookFormat is the name of the format in which the SDK's webhooks are sent events.
const WebhookFormat = "orkestr"

// Types of events that the SDK knows.
const (
	hookCreated    = "sandbox.created"
	hookPaused     = "sandbox.paused"
	hookResumed    = "sandbox.resumed"
	hookTerminated = "sandbox.terminated"
	hookExpired    = "sandbox.expired" // in place of terminated: its end ended it
	hookBuilt      = "template.build_finished"
	hookMoved      = "volume.moved" // never: there is one region
	hookVolume     = "volume.expired"
)

func webhookTypes() []string {
	return []string{hookCreated, hookPaused, hookResumed, hookTerminated, hookExpired, hookBuilt, hookMoved, hookVolume}
}

// Deliveries is the format of webhooks that the SDK's verify_webhook_signature verifies.
func Deliveries() webhooks.Format {
	return webhooks.Format{Types: webhookTypes(), Type: hookType, Body: hookBody, Sign: hookSign}
}

// hookType returns what Orkestr calls an event, "" for one that it does not know.
func hookType(e *events.Event) string {
	switch e.Type {
	case "sandbox.created":
		return hookCreated
	case "sandbox.paused", "sandbox.stopped":
		return hookPaused
	case "sandbox.resumed":
		return hookResumed
	case "sandbox.started":
		var s v1.Sandbox
		if json.Unmarshal(e.Object, &s) == nil && ranBefore(&s, e.At) {
			return hookResumed
		}
	case "sandbox.deleted":
		var s v1.Sandbox
		if e.Actor == sandbox.System && json.Unmarshal(e.Object, &s) == nil && s.ExpiresAt != nil && !e.At.Before(*s.ExpiresAt) {
			return hookExpired
		}
		return hookTerminated
	case "template.created", "template.updated":
		var t v1.Template
		built := json.Unmarshal(e.Object, &t) == nil && (t.Status == string(template.Ready) || t.Status == string(template.Failed))
		if built && (e.Type == "template.created" || e.Actor == "") { // a build ends by itself; who switches one off or on is named
			return hookBuilt
		}
	case "volume.expired":
		return hookVolume
	}
	return ""
}

// ranBefore reports whether a sandbox that has just started ran before that: a first start is of its create.
func ranBefore(s *v1.Sandbox, at time.Time) bool {
	if s.StartedAt == nil {
		return false
	}
	ran := time.Duration(s.RunSeconds*float64(time.Second)) - at.Sub(*s.StartedAt)
	return ran > time.Millisecond // RunSeconds has no smaller parts
}

// hookEvent is the body of a delivery. The SDK reads nothing of it but its bytes, for the signature.
type hookEvent struct {
	ID   string    `json:"id"` // of the event: the same in each delivery of it
	Type string    `json:"event_type"`
	At   time.Time `json:"created_at"`
	Data any       `json:"data"`
}

// hookSandbox is what is told of a sandbox.
type hookSandbox struct {
	ID        string            `json:"id"`
	Status    string            `json:"status"`
	CreatedAt time.Time         `json:"created_at"`
	ExpiresAt *time.Time        `json:"expires_at"`
	Metadata  map[string]string `json:"metadata"`
}

// hookNoun is what is told of a volume or a template.
type hookNoun struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Status string `json:"status"`
}

func hookBody(e *events.Event, typ string) []byte {
	out := hookEvent{ID: e.ID, Type: typ, At: e.At.UTC()}
	switch typ {
	case hookBuilt, hookVolume:
		n := hookNoun{ID: e.Subject}
		_ = json.Unmarshal(e.Object, &n) // it is one of ours
		out.Data = n
	default:
		var s v1.Sandbox
		_ = json.Unmarshal(e.Object, &s) // likewise
		out.Data = hookSandbox{e.Subject, orkestrterms.Status(sandbox.State(s.Status)), s.CreatedAt, s.ExpiresAt, s.Metadata}
	}
	b, err := json.Marshal(out)
	if err != nil {
		return []byte("null") // they are texts and times
	}
	return b
}

// hookSign signs a delivery. Its id is the same at each attempt.
func hookSign(h http.Header, d *webhooks.Delivery, secret string) {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write(d.Body)
	h.Set("X-Orkestr-Event", d.Type)
	h.Set("X-Orkestr-Delivery", d.ID)
	h.Set("X-Orkestr-Signature", "sha256="+hex.EncodeToString(m.Sum(nil)))
}
