// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"
	"testing"

	"sandpit.dev/internal/cluster"
	"sandpit.dev/internal/cluster/clustertest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/kubernetes"
	"sandpit.dev/sandbox"
)

// object is one as JSON has it.
type object = map[string]any

// at returns what is at a path of an object: names of fields, and numbers of elements.
func at(t *testing.T, o any, path ...any) object {
	t.Helper()
	for _, p := range path {
		switch p := p.(type) {
		case string:
			o = o.(object)[p]
		case int:
			o = o.([]any)[p]
		}
	}
	return o.(object)
}

// admits: a namespace at the level privileged with the policy that we ship admits sandboxes of all forms, and nothing that differs from them.
func admits(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	policy, err := os.ReadFile("../../deploy/kubernetes/admission.yaml")
	if err != nil {
		t.Fatal(err)
	}
	open := []byte(`expression: "''"`)
	if !bytes.Contains(policy, open) {
		t.Fatal("the policy has no line for the image of the agent")
	}
	clustertest.Apply(t, c, string(bytes.Replace(policy, open, []byte(`expression: "'`+images+`/agent:'"`), 1)))
	o := withUsers(t, c)
	clustertest.Kubectl(t, c, "label", "namespace", o.Space, "pod-security.kubernetes.io/enforce=privileged", "sandpit.dev/sandboxes=true")
	admin, err := cluster.Administrator(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	// A policy comes to hold a moment after it is made.
	other := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"other"},"spec":{"containers":[{"name":"c","image":"localhost/none"}]}}`
	post := func(query, text string) (string, error) {
		resp, err := admin.Post(cluster.URL+"/api/v1/namespaces/"+o.Space+"/pods"+query, "application/json", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		out, err := io.ReadAll(resp.Body)
		if err == nil && resp.StatusCode != http.StatusCreated {
			err = errors.New(resp.Status)
		}
		return string(out), err
	}
	try := func(text string) (string, error) { return post("?dryRun=All", text) }
	for {
		out, err := try(other)
		if err != nil && strings.Contains(out, "sandpit-sandboxes") {
			break
		}
		if t.Context().Err() != nil {
			t.Fatalf("the policy does not come to hold: %s", out)
		}
	}

	s := serve(t, c, image, o)
	if caps, err := s.Probe(t.Context()); err != nil || caps[runtime.Network] != nil || caps[runtime.RootDisk] != nil {
		t.Errorf("Probe: %v, %v, %v", caps[runtime.Network], caps[runtime.RootDisk], err)
	}
	i := s.create(s.spec())
	if got := run(t, i, "root", "ls -d /.sandpit/root"); got != "/.sandpit/root" {
		t.Errorf("it does not keep its root: %q", got)
	}
	steered(t, i)
	brought(t, i)
	_, kept := s.pod(i.Handle().ID)
	withVolume := s.create(s.mounting(map[string]sandbox.ID{"/mnt/v": s.volume(t, 0)}))
	if got := run(t, withVolume, "", "echo mine > /mnt/v/x; cat /mnt/v/x"); got != "mine" {
		t.Errorf("one with a volume: %q", got)
	}
	_, mounting := s.pod(withVolume.Handle().ID)
	if err := i.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := kubernetes.LeaveReader(t.Context(), i); err != nil {
		t.Errorf("what reads a disk: %v", err)
	}
	plain := o
	plain.Users, plain.Dir, plain.Namespace = false, t.TempDir(), newNamespace()
	p := serve(t, c, image, plain)
	j := p.create(p.spec())
	_, bare := p.pod(j.Handle().ID)
	p.SetMinor(33)
	if got := run(t, p.create(p.mounting(map[string]sandbox.ID{"/mnt/v": p.volume(t, 0)})), "", "echo a copy"); got != "a copy" {
		t.Errorf("got %q", got)
	}
	out, err := c.Kubectl(t.Context(), "-n", o.Space, "debug", "sandbox-"+string(j.Handle().ID), "--image=localhost/none", "--profile=sysadmin").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "lays its network") {
		t.Errorf("a container of somebody's beside a sandbox: %s", out)
	}

	fresh := func(text string) object {
		var o object
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		m := at(t, o, "metadata")
		o["metadata"] = object{"name": "tried", "labels": m["labels"], "annotations": m["annotations"]}
		delete(o, "status")
		spec := at(t, o, "spec")
		delete(spec, "ephemeralContainers")
		delete(spec, "nodeName")
		return o
	}
	for name, text := range map[string]string{"one that keeps its root": kept, "one without users": bare, "one with a volume": mounting} {
		b, _ := json.Marshal(fresh(text))
		if out, err := try(string(b)); err != nil {
			t.Errorf("%s is refused: %s", name, out)
		}
	}
	beside := fresh(kept)
	step := maps.Clone(at(t, beside, "spec", "containers", 0))
	step["name"] = "step"
	at(t, beside, "spec")["containers"] = append(at(t, beside, "spec")["containers"].([]any), step)
	b, _ := json.Marshal(beside)
	if out, err := post("", string(b)); err == nil || !strings.Contains(out, "is one container") {
		t.Errorf("a step that is no dry run: %v: %s", err, out)
	}
	spec := func(f func(s object)) func(o object) { return func(o object) { f(at(t, o, "spec")) } }
	box := func(f func(c object)) func(o object) {
		return func(o object) { f(at(t, o, "spec", "containers", 0)) }
	}
	secure := func(f func(c object)) func(o object) {
		return func(o object) { f(at(t, o, "spec", "containers", 0, "securityContext")) }
	}
	places := func(f func(c object)) func(o object) {
		return func(o object) { f(at(t, o, "spec", "initContainers", 0)) }
	}
	for name, change := range map[string]func(o object){
		"NoLabels": func(o object) { delete(at(t, o, "metadata"), "labels") },
		"HostNetwork": spec(func(s object) {
			s["hostNetwork"] = true
			s["hostUsers"] = true
			delete(at(t, s, "securityContext"), "sysctls")
		}),
		"HostPID":        spec(func(s object) { s["hostPID"] = true; s["hostUsers"] = true }),
		"HostUsers":      spec(func(s object) { s["hostUsers"] = true }),
		"NoWordOfUsers":  spec(func(s object) { delete(s, "hostUsers") }),
		"Token":          spec(func(s object) { s["automountServiceAccountToken"] = true }),
		"NoWordOfTokens": spec(func(s object) { delete(s, "automountServiceAccountToken") }),
		"Restarts":       spec(func(s object) { s["restartPolicy"] = "Always" }),
		"HostPath": spec(func(s object) {
			s["volumes"] = append(s["volumes"].([]any), object{"name": "h", "hostPath": object{"path": "/"}})
		}),
		"Secret": spec(func(s object) {
			s["volumes"] = append(s["volumes"].([]any), object{"name": "h", "secret": object{"secretName": "s"}})
		}),
		"NoFilter":   spec(func(s object) { s["securityContext"] = object{} }),
		"Unconfined": secure(func(c object) { c["seccompProfile"] = object{"type": "Unconfined"} }),
		"Sysctl": spec(func(s object) {
			at(t, s, "securityContext")["sysctls"] = []any{object{"name": "kernel.shm_rmid_forced", "value": "1"}}
		}),
		"Privileged": secure(func(c object) {
			c["privileged"] = true
			c["allowPrivilegeEscalation"] = true
			delete(c, "appArmorProfile")
		}),
		"Escalation":        secure(func(c object) { delete(c, "allowPrivilegeEscalation") }),
		"Proc":              secure(func(c object) { c["procMount"] = "Unmasked" }),
		"NetAdmin":          secure(func(c object) { at(t, c, "capabilities")["add"] = []any{"NET_ADMIN"} }),
		"SysPtrace":         secure(func(c object) { at(t, c, "capabilities")["add"] = []any{"SYS_ADMIN", "SYS_PTRACE"} }),
		"KeepsCapabilities": secure(func(c object) { delete(at(t, c, "capabilities"), "drop") }),
		"AnotherProgram":    box(func(c object) { c["command"] = []any{"/bin/sh"} }),
		"ItsOwnProgram":     box(func(c object) { delete(c, "command") }),
		"AnotherAgent":      spec(func(s object) { at(t, s, "volumes", 1)["image"] = object{"reference": "localhost/other:1"} }),
		"AgentsImage":       box(func(c object) { c["command"] = []any{"/sandpit-agent"}; c["image"] = "localhost/other:1" }),
		"ToldOfMounts": box(func(c object) {
			c["volumeMounts"] = append(c["volumeMounts"].([]any), object{"name": "disk", "mountPath": "/x", "mountPropagation": "HostToContainer"})
		}),
		"Hook": box(func(c object) {
			c["lifecycle"] = object{"postStart": object{"exec": object{"command": []any{"/bin/sh"}}}}
		}),
		"HostPort":     box(func(c object) { c["ports"] = []any{object{"containerPort": 80, "hostPort": 80}} }),
		"EnvOfASecret": box(func(c object) { c["envFrom"] = []any{object{"secretRef": object{"name": "s"}}} }),
		"TwoContainers": spec(func(s object) {
			second := maps.Clone(at(t, s, "containers", 0))
			second["name"] = "second"
			s["containers"] = append(s["containers"].([]any), second)
		}),
		"AnotherInit": spec(func(s object) {
			first := maps.Clone(at(t, s, "containers", 0))
			first["name"] = "first"
			s["initContainers"] = []any{first}
		}),
		"AnotherProgramForPlaces": places(func(c object) { c["command"] = []any{"/bin/sh"} }),
		"PlacesByAnotherWord":     places(func(c object) { c["args"] = []any{"serve", "{}"} }),
		"PlacesByMoreRights":      places(func(c object) { at(t, c, "securityContext", "capabilities")["add"] = []any{"SYS_ADMIN"} }),
	} {
		t.Run(name, func(t *testing.T) {
			o := fresh(mounting)
			change(o)
			b, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			if out, err := try(string(b)); err == nil || !strings.Contains(out, "ValidatingAdmissionPolicy 'sandpit-sandboxes'") {
				t.Errorf("got %v: %s", err, out)
			}
		})
	}
}
