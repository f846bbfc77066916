// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engineapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"sandpit.dev/fault"
)

// quick is a clock by which a minute takes a twentieth of a second.
type quick struct{}

const quickness = 1200

func (quick) AfterFunc(d time.Duration, f func()) Timer {
	return quickTimer{time.AfterFunc(d/quickness, f)}
}

type quickTimer struct{ *time.Timer }

func (t quickTimer) Reset(d time.Duration) bool { return t.Timer.Reset(d / quickness) }

// Each call has an end that is not the caller's, whether the Engine says nothing at all, or begins an answer and does not
// go on; it is told which call it was.
func TestEveryCallIsBounded(t *testing.T) {
	ctx := t.Context()
	read := func(r io.ReadCloser, err error) error {
		if err == nil {
			_, err = io.Copy(io.Discard, r)
			_ = r.Close()
		}
		return err
	}
	calls := map[string]func(*Client) error{
		"GET /info":                  func(c *Client) error { _, err := c.Info(ctx); return err },
		"GET /events":                func(c *Client) error { _, err := c.Events(ctx, time.Time{}, nil); return err },
		"GET /containers/x/json":     func(c *Client) error { _, err := c.InspectContainer(ctx, "x"); return err },
		"GET /containers/json":       func(c *Client) error { _, err := c.ListContainers(ctx, "x"); return err },
		"POST /containers/create":    func(c *Client) error { _, err := c.CreateContainer(ctx, Container{}); return err },
		"POST /containers/x/start":   func(c *Client) error { return c.StartContainer(ctx, "x") },
		"POST /containers/x/stop":    func(c *Client) error { return c.StopContainer(ctx, "x", time.Second) },
		"POST /containers/x/kill":    func(c *Client) error { return c.KillContainer(ctx, "x") },
		"POST /containers/x/pause":   func(c *Client) error { return c.PauseContainer(ctx, "x") },
		"POST /containers/x/unpause": func(c *Client) error { return c.ResumeContainer(ctx, "x") },
		"POST /containers/x/update":  func(c *Client) error { return c.UpdateContainer(ctx, "x", Resources{}) },
		"POST /containers/x/rename":  func(c *Client) error { return c.RenameContainer(ctx, "x", "y") },
		"DELETE /containers/x":       func(c *Client) error { return c.RemoveContainer(ctx, "x") },
		"GET /containers/x/stats":    func(c *Client) error { _, err := c.ContainerStats(ctx, "x"); return err },
		"GET /containers/x/export":   func(c *Client) error { return read(c.ExportContainer(ctx, "x")) },
		"PUT /containers/x/archive":  func(c *Client) error { return c.PutArchive(ctx, "x", "/", strings.NewReader("")) },
		"HEAD /containers/x/archive": func(c *Client) error { _, err := c.StatArchive(ctx, "x", "/"); return err },
		"GET /containers/x/archive":  func(c *Client) error { _, _, err := c.OwnerOf(ctx, "x", "/"); return err },
		"POST /containers/x/exec":    func(c *Client) error { _, err := c.Exec(ctx, "x", "true"); return err },
		"POST /commit":               func(c *Client) error { _, err := c.CommitContainer(ctx, "x", Commit{}); return err },
		"GET /images/x/json":         func(c *Client) error { _, err := c.InspectImage(ctx, "x"); return err },
		"GET /images/json":           func(c *Client) error { _, err := c.ListImages(ctx); return err },
		"POST /images/load":          func(c *Client) error { return c.LoadImage(ctx, strings.NewReader("")) },
		"GET /images/x/get":          func(c *Client) error { return read(c.SaveImage(ctx, "x")) },
		"POST /images/create":        func(c *Client) error { return c.PullImage(ctx, "x", nil) },
		"POST /images/x/tag":         func(c *Client) error { return c.TagImage(ctx, "x", "y", "z") },
		"DELETE /images/x":           func(c *Client) error { return c.RemoveImage(ctx, "x") },
		"POST /volumes/create":       func(c *Client) error { _, err := c.CreateVolume(ctx, "x", nil); return err },
		"GET /volumes/x":             func(c *Client) error { _, err := c.InspectVolume(ctx, "x"); return err },
		"GET /volumes":               func(c *Client) error { _, err := c.ListVolumes(ctx); return err },
		"DELETE /volumes/x":          func(c *Client) error { return c.RemoveVolume(ctx, "x") },
		"POST /exec/made/start":      func(c *Client) error { _, err := c.Exec(ctx, "made", "true"); return err },
	}
	over := make(chan struct{})
	defer close(over)
	hang := func(r *http.Request) {
		select {
		case <-over:
		case <-r.Context().Done():
		}
	}
	for how, begin := range map[string]func(http.ResponseWriter){
		"Silent":   func(http.ResponseWriter) {},
		"HalfDone": func(w http.ResponseWriter) { _, _ = io.WriteString(w, " "); w.(http.Flusher).Flush() },
		"HalfRefused": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, `{"message":`)
			w.(http.Flusher).Flush()
		},
	} {
		t.Run(how, func(t *testing.T) {
			c := opened(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/made/exec") {
					_, _ = io.WriteString(w, `{"Id":"made"}`)
					return
				}
				begin(w)
				hang(r)
			})
			c.clock = quick{}
			for name, call := range calls {
				if how == "HalfDone" && (strings.HasPrefix(name, "HEAD") || name == "GET /events" || name == "POST /exec/made/start") {
					continue // they have no body, or may be quiet
				}
				if how == "HalfRefused" && strings.HasPrefix(name, "HEAD") {
					continue
				}
				t.Run(strings.ReplaceAll(name, "/", "."), func(t *testing.T) {
					t.Parallel()
					err := call(c)
					switch {
					case how == "HalfRefused": // it is told as a refusal without words where the head came in time
						wantFault(t, err, fault.Unavailable, "the Engine at unix://")
					case strings.Contains(name, "made"): // the call before that is answered, and may be too late
						wantFault(t, err, fault.Unavailable, "did not answer POST ")
					default:
						wantFault(t, err, fault.Unavailable, "did not answer "+name+" within ")
					}
					if fault.As(err).Remedy == "" {
						t.Error("it says nothing of what to do")
					}
				})
			}
		})
	}
}

// A stream of events that lost its Engine is silent, as one is of an Engine where nothing happens: it has an end.
func TestAStreamOfEventsHasAnEnd(t *testing.T) {
	over := make(chan struct{})
	defer close(over)
	c := opened(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		select {
		case <-over:
		case <-r.Context().Done():
		}
	})
	c.clock = quick{}
	e, err := c.Events(t.Context(), time.Time{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.Next(); !errors.Is(err, ErrOver) {
		t.Errorf("got %v, want %v", err, ErrOver)
	}
}

// A call whose caller has a bound for several together ends with what the caller says of it.
func TestTheCallersBoundIsTold(t *testing.T) {
	over := make(chan struct{})
	defer close(over)
	c := opened(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-over:
		case <-r.Context().Done():
		}
	})
	ctx, cancel := WithTimeout(t.Context(), quick{}, time.Second, fault.New(fault.Unavailable, "all of it took too long"))
	defer cancel()
	_, err := c.Info(ctx)
	wantFault(t, err, fault.Unavailable, "all of it took too long")
	ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	if _, err := c.Info(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the caller's end", err)
	}
}
