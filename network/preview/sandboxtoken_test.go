// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package preview_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"sandpit.dev/network/preview"
)

func TestASandboxsOwnTokenOpensEachOfItsPorts(t *testing.T) {
	h := open(t, mirror)
	token := h.links.SandboxToken("default", web, "k1")
	query := func(name, token string) string { return "/?" + name + "=" + url.QueryEscape(token) }
	if a := h.get(h.hostOf(web), query("sandpit_token", token)); a.StatusCode != 401 {
		t.Errorf("before there is one: got %d", a.StatusCode)
	}
	h.show(web, preview.Seen{Project: "default", Key: "k1"})
	for _, name := range []string{"sandpit_token", "ork_preview_token", "DAYTONA_SANDBOX_AUTH_KEY"} {
		if s := h.get(h.hostOf(web), query(name, token)+"&own=1").want(t, 200).seen(t); strings.Contains(s.URI, token) || !strings.Contains(s.URI, "own=1") {
			t.Errorf("the program is told %s", s.URI)
		}
	}
	for _, name := range []string{"X-Sandpit-Token", "X-Orkestr-Preview-Token", "X-Daytona-Preview-Token"} {
		if s := h.get(h.hostOf(web), "/", name, token).want(t, 200).seen(t); s.Header.Get(name) != "" {
			t.Errorf("the program is told %s", s.Header)
		}
	}
	if s := h.get(h.hostOf(web), "/", "Authorization", "Bearer "+token).want(t, 200).seen(t); s.Header.Get("Authorization") != "" {
		t.Errorf("the program is told %s", s.Header)
	}
	// Nothing listens at the other port: who gets as far as that is in.
	for what, c := range map[string]struct {
		host, path string
		headers    []string
		status     int
	}{
		"another port":          {"8001-" + web + ".localhost", "/", []string{"X-Orkestr-Preview-Token", token}, 502},
		"by path":               {h.addr, pathOf(web) + query("ork_preview_token", token), nil, 200},
		"another sandbox":       {h.hostOf(other), "/", []string{"X-Orkestr-Preview-Token", token}, 401},
		"of another key":        {h.hostOf(web), "/", []string{"X-Orkestr-Preview-Token", h.links.SandboxToken("default", web, "k2")}, 401},
		"of no key":             {h.hostOf(web), "/", []string{"X-Orkestr-Preview-Token", h.links.SandboxToken("default", web, "")}, 401},
		"as a cookie":           {h.hostOf(web), "/", []string{"Cookie", "sandpit_preview=" + token}, 401},
		"changed":               {h.hostOf(web), "/", []string{"X-Orkestr-Preview-Token", strings.Replace(token, "spp_s.0.", "spp_s.8000.", 1)}, 401},
		"in the path":           {h.addr, "/preview/" + token + "/", nil, 404},
		"a token of the API":    {h.hostOf(web), query("ork_preview_token", owner), nil, 401},
		"beside one that is no": {h.hostOf(web), query("ork_preview_token", "spp_none"), []string{"X-Orkestr-Preview-Token", token}, 200},
		"none":                  {h.hostOf(web), "/", nil, 401},
	} {
		if a := h.get(c.host, c.path, c.headers...); a.StatusCode != c.status {
			t.Errorf("%s: got %d %s, want %d", what, a.StatusCode, a.body, c.status)
		}
	}
	h.advance(365 * 24 * time.Hour)
	h.get(h.hostOf(web), "/", "X-Orkestr-Preview-Token", token).want(t, 200)
}

func TestABrowserThatHasShownASandboxsTokenIsInForTwelveHours(t *testing.T) {
	h := open(t, mirror)
	h.show(web, preview.Seen{Project: "default", Key: "k1"})
	token := h.links.SandboxToken("default", web, "k1")
	c := h.browse(h.hostOf(web), "/a?ork_preview_token="+url.QueryEscape(token))
	if c.MaxAge != 12*3600 || !c.HttpOnly {
		t.Errorf("got %+v", c)
	}
	own := []string{"Cookie", "sandpit_preview=" + c.Value, "Sec-Fetch-Site", "same-origin"}
	h.get(h.hostOf(web), "/app.js", own...).want(t, 200)
	h.get("8001-"+web+".localhost", "/", own...).want(t, 401)
	h.get(h.hostOf(web), "/", "X-Orkestr-Preview-Token", c.Value).want(t, 401) // it is no token
	h.show(web, preview.Seen{Project: "default", Key: "k2"})
	h.get(h.hostOf(web), "/app.js", own...).want(t, 401)
	h.show(web, preview.Seen{Project: "default", Key: "k1"})
	h.advance(12 * time.Hour)
	h.get(h.hostOf(web), "/app.js", own...).want(t, 401)
}

// By path the token in the path is for the one port.
func TestByPathABrowserIsSentToAnAddressOfThePort(t *testing.T) {
	h := openAt(t, "", mirror)
	h.show(web, preview.Seen{Project: "default", Key: "k1"})
	token := h.links.SandboxToken("default", web, "k1")
	page := []string{"Accept", "text/html", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document", "Sec-Fetch-Site", "none"}
	a := h.get(h.addr, pathOf(web)+"/a?ork_preview_token="+url.QueryEscape(token)+"&x=1", page...).want(t, 302)
	to, err := url.Parse(a.Header.Get("Location"))
	if err != nil || !strings.HasPrefix(to.Path, "/preview/spp_s.8000.") || !strings.HasSuffix(to.Path, "/a") || to.RawQuery != "x=1" {
		t.Fatalf("got %s (%v)", to, err)
	}
	h.get(h.addr, to.Path+"?x=1", page...).want(t, 200)
	h.get(h.addr, strings.TrimSuffix(to.Path, "a")+"app.js").want(t, 200)
	h.show(web, preview.Seen{Project: "default"})
	h.get(h.addr, to.Path).want(t, 401)
}

func TestWhatIsOpenByASandboxsTokenEndsWithIt(t *testing.T) {
	h := open(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "begun")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	h.show(web, preview.Seen{Project: "default", Key: "k1"})
	resp := h.askHost(t, h.hostOf(web), "X-Orkestr-Preview-Token", h.links.SandboxToken("default", web, "k1"))
	if _, err := io.ReadFull(resp.Body, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	h.show(web, preview.Seen{Project: "default"})
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the stream ended as if it were whole")
	}
}
