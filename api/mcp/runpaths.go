// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"encoding/json"
	"net/http"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/mcp/batch"
	apiruns "sandpit.dev/api/runs"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

// serveRun answers what is below the reserved words of the path: a run's status, and
// its events. It reports whether the request was one.
func (h *Handler) serveRun(w http.ResponseWriter, r *http.Request, caller access.Caller) bool {
	_, rest, _ := strings.Cut(r.URL.Path, "/mcp/")
	word, id, _ := strings.Cut(rest, "/")
	var answer func() error
	switch {
	case word == batch.WordRuns:
		answer = func() error { return h.runStatus(w, r, caller, id) }
	case word == batch.WordEvents && id == "":
		answer = func() error { return h.runEvents(w, r, caller) }
	default:
		return false
	}
	var err error
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		err = guard.WithStatus(http.StatusMethodNotAllowed, fault.New(fault.Invalid, "a run can only be read here").
			WithRemedy("cancel one by POST /v1/runs/{id}/cancel"))
	} else {
		err = answer()
	}
	if err != nil {
		guard.Error(w, r, err)
	}
	return true
}

func (h *Handler) runStatus(w http.ResponseWriter, r *http.Request, caller access.Caller, id string) error {
	run, err := h.services.Runs.Get(r.Context(), caller, id)
	if err != nil {
		return err
	}
	streams, err := h.services.Runs.Streams(r.Context(), caller, id)
	if err != nil {
		return err
	}
	return writeRun(w, apiruns.Shape(run, streams, batch.Addresses))
}

func writeRun(w http.ResponseWriter, run v1.Run) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(run) // the client went away: nothing to tell
	return nil
}

func (h *Handler) runEvents(w http.ResponseWriter, r *http.Request, caller access.Caller) error {
	id := r.URL.Query().Get("run_id")
	if id == "" {
		return fault.InvalidField("run_id", "is missing; a stream of events is one run's").WithRemedy("GET /mcp/events?run_id=RUN")
	}
	return apiruns.Stream(w, r, h.services.Runs, caller, id, apiruns.Timing{Heartbeat: h.keepAlive})
}
