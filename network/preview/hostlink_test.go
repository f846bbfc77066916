// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package preview_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"sandpit.dev/network/preview"
)

const onRecord = "dddddddddddddddd"

// ask sends a request to a host through the proxy.
func (h *house) askHost(t *testing.T, host string, header ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+h.addr+"/page", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := new(http.Transport).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func TestTheHostOfALinkIsTheRightToIt(t *testing.T) {
	h := open(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Referrer-Policy", r.Header.Get("X-Policy"))
		fmt.Fprintf(w, "%s|%s", r.Host, r.Header.Get("Authorization"))
	})
	grant := preview.Grant{Project: "default", Sandbox: web, Port: 8000}
	host := h.grant(onRecord, grant)
	body := func(header ...string) string {
		t.Helper()
		resp := h.askHost(t, host, header...)
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("got %s %s, %v", resp.Status, b, err)
		}
		return string(b)
	}
	if label, _, _ := strings.Cut(host, "."); len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		t.Errorf("%q is not the label of a host", label)
	}
	if got := body(); got != host+"|" {
		t.Errorf("got %q", got)
	}
	if resp := h.askHost(t, strings.ToUpper(host)+":8080"); resp.StatusCode != 200 {
		t.Errorf("in upper case: %s", resp.Status)
	}
	t.Run("ThePageDoesNotNameIt", func(t *testing.T) {
		for given, want := range map[string]string{"": "same-origin", "unsafe-url": "same-origin", "no-referrer": "no-referrer", "no-referrer, unsafe-url": "same-origin"} {
			if got := h.askHost(t, host, "X-Policy", given).Header.Get("Referrer-Policy"); got != want {
				t.Errorf("%q: got %q, want %q", given, got, want)
			}
		}
	})
	t.Run("OurTokensStayOurs", func(t *testing.T) {
		for _, token := range []string{owner, admin, reader, "spt_gone", "sps_gone.x"} {
			if got := body("Authorization", "Bearer "+token); got != host+"|" {
				t.Errorf("%s: the program saw %q", token, got)
			}
		}
		if got := body("Authorization", "Bearer its-own"); got != host+"|Bearer its-own" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("NoOtherHostIs", func(t *testing.T) {
		label, _, _ := strings.Cut(host, ".")
		dials := func() int { h.mu.Lock(); defer h.mu.Unlock(); return h.dials }
		before := dials()
		for i := strings.IndexByte(label, '-') + 1; i < len(label); i++ {
			for _, c := range "a0z" {
				if other := label[:i] + string(c) + label[i+1:]; other != label {
					if resp := h.askHost(t, other+".localhost"); resp.StatusCode != 401 {
						t.Fatalf("%s: got %s", other, resp.Status)
					}
				}
			}
		}
		_, token, _ := strings.Cut(label, "-")
		for _, port := range []string{"8001", "80", "0", "08000", "65536"} {
			if resp := h.askHost(t, port+"-"+token+".localhost"); resp.StatusCode != 401 && resp.StatusCode != 404 {
				t.Errorf("port %s: got %s", port, resp.Status)
			}
		}
		for _, other := range []string{"8000-" + token[:39], "8000-" + token + "0", token, "8000-" + onRecord} {
			if resp := h.askHost(t, other+".localhost"); resp.StatusCode == 200 {
				t.Errorf("%s: got %s", other, resp.Status)
			}
		}
		if dials() != before {
			t.Error("a program was reached")
		}
	})
	t.Run("ItIsNotThePathsNorTheQuerys", func(t *testing.T) {
		token := h.links.HostToken(onRecord)
		for _, header := range [][]string{{"X-Sandpit-Token", token}, {"Authorization", "Bearer " + token}, {"Cookie", "sandpit_preview=" + token}} {
			if resp := h.askHost(t, "8000-"+web+".localhost", header...); resp.StatusCode != 401 {
				t.Errorf("%v: got %s", header, resp.Status)
			}
		}
	})
	t.Run("ItsUseIsOnRecordOnce", func(t *testing.T) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.opened) != 1 || h.opened[0] != onRecord {
			t.Errorf("got %v", h.opened)
		}
	})
}

func TestWhatALinkHasOpenEndsWithIt(t *testing.T) {
	h := open(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "begun")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	host := h.grant(onRecord, preview.Grant{Project: "default", Sandbox: web, Port: 8000})
	resp := h.askHost(t, host)
	if _, err := io.ReadFull(resp.Body, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	h.revoke(onRecord)
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the stream ended as if it were whole")
	}
	if resp := h.askHost(t, host); resp.StatusCode != 401 {
		t.Errorf("after it: got %s", resp.Status)
	}
}

func TestALinkThatExpiredIsNone(t *testing.T) {
	h := open(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "begun")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	host := h.grant(onRecord, preview.Grant{Project: "default", Sandbox: web, Port: 8000, Expires: h.now.Add(50 * time.Millisecond)})
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+h.addr+"/page", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	resp, err := new(http.Transport).RoundTrip(req)
	if err != nil {
		return // it ended before its answer began
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("what ended with the link ended as if it were whole: %s %q", resp.Status, b)
	}
}
