// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coder/websocket"

	"sandpit.dev/internal/cluster"
)

// podPeer uses a cluster as a program does that wants a sandbox and has nothing else: it makes a pod whose own process only waits, by the API,
// hears by a watch when it runs, and has commands run by the API's exec.
type podPeer struct {
	http  *http.Client
	image string
}

func newPodPeer(kubeconfig, image string) (*podPeer, error) {
	c, err := cluster.Administrator(kubeconfig)
	return &podPeer{c, image}, err
}

func podName(random string) string { return strings.ToLower(random[:10]) }

const podsURL = cluster.URL + "/api/v1/namespaces/default/pods"

// ask sends a request and returns the body of its answer.
func (p *podPeer) ask(ctx context.Context, method, to string, body any) (io.ReadCloser, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := p.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10)) // of what failed anyway
		return nil, errors.Join(fmt.Errorf("%s %s: %s: %s", method, to, resp.Status, said), resp.Body.Close())
	}
	return resp.Body, nil
}

const claimsURL = cluster.URL + "/api/v1/namespaces/default/persistentvolumeclaims"

// life makes a pod, with a claim of its own if claim is set, and is over when it runs, or when a command in it has ended. The rest of its life
// is not timed.
func (p *podPeer) life(ctx context.Context, claim, command bool) (took time.Duration, err error) {
	name := "bench-" + podName(rand.Text())
	began := time.Now()
	if claim {
		defer func() { err = errors.Join(err, p.remove(context.WithoutCancel(ctx), claimsURL+"/"+name)) }()
	}
	err = p.start(ctx, name, claim)
	if err == nil && command {
		err = p.exec(ctx, name, "/bin/true")
	}
	took = time.Since(began)
	return took, errors.Join(err, p.remove(context.WithoutCancel(ctx), podsURL+"/"+name))
}

// claim makes a claim of the cluster's default class.
func (p *podPeer) claim(ctx context.Context, name string) error {
	made, err := p.ask(ctx, http.MethodPost, claimsURL, map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"accessModes": []string{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]string{"storage": "1Gi"}}},
	})
	if err != nil {
		return err
	}
	return made.Close()
}

// start makes a pod, with a claim of its name if claim is set, and waits until it runs.
func (p *podPeer) start(ctx context.Context, name string, claim bool) (err error) {
	no, small := false, map[string]string{"cpu": "10m", "memory": "5Mi"}
	container := map[string]any{
		"name": "main", "image": p.image, "imagePullPolicy": "IfNotPresent", "command": []string{"sleep", "infinity"},
		"resources": map[string]any{"limits": map[string]string{"cpu": "1", "memory": "512Mi"}, "requests": small},
	}
	spec := map[string]any{
		"restartPolicy": "Never", "automountServiceAccountToken": &no, "enableServiceLinks": &no, "terminationGracePeriodSeconds": 0, "containers": []any{container},
	}
	if claim {
		if err := p.claim(ctx, name); err != nil {
			return err
		}
		spec["volumes"] = []any{map[string]any{"name": "disk", "persistentVolumeClaim": map[string]any{"claimName": name}}}
		container["volumeMounts"] = []any{map[string]any{"name": "disk", "mountPath": "/workspace"}}
	}
	made, err := p.ask(ctx, http.MethodPost, podsURL, map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name}, "spec": spec})
	if err != nil {
		return err
	}
	if err := made.Close(); err != nil {
		return err
	}
	events, err := p.ask(ctx, http.MethodGet, podsURL+"?watch=1&fieldSelector="+url.QueryEscape("metadata.name="+name), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, events.Close()) }()
	for in := json.NewDecoder(events); ; {
		var e struct {
			Object struct{ Status struct{ Phase string } }
		}
		if err := in.Decode(&e); err != nil {
			return err
		}
		if e.Object.Status.Phase == "Running" {
			return nil
		}
	}
}

// exec runs a program in a pod by the API, and waits for what it says of its end.
func (p *podPeer) exec(ctx context.Context, name string, argv ...string) error {
	query := url.Values{"command": argv, "stdout": {"true"}, "stderr": {"true"}}
	ws, _, err := websocket.Dial(ctx, podsURL+"/"+name+"/exec?"+query.Encode(), &websocket.DialOptions{HTTPClient: p.http, Subprotocols: []string{"v5.channel.k8s.io"}})
	if err != nil {
		return err
	}
	defer func() { _ = ws.CloseNow() }()
	const status = 3 // the channel
	for {
		_, b, err := ws.Read(ctx)
		if err != nil {
			return err
		}
		if len(b) == 0 || b[0] != status {
			continue
		}
		var s struct{ Status, Message string }
		if err := json.Unmarshal(b[1:], &s); err != nil || s.Status != "Success" {
			return fmt.Errorf("%v ended with %s %s", argv, s.Status, s.Message)
		}
		return nil
	}
}

// remove deletes an object.
func (p *podPeer) remove(ctx context.Context, object string) error {
	body, err := p.ask(ctx, http.MethodDelete, object+"?gracePeriodSeconds=0", map[string]any{})
	if err != nil {
		return err
	}
	return body.Close()
}
