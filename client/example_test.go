// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
)

func Example() {
	ctx := context.Background()
	c := client.New("http://127.0.0.1:8080", os.Getenv("SANDPIT_TOKEN"), client.Options{})
	// With a key the same sandbox is found again the next time.
	box, _, err := c.Create(ctx, v1.CreateSandbox{Key: new("agent-7"), Image: new("python")})
	if err != nil {
		log.Fatal(err)
	}
	err = c.WriteFile(ctx, box.ID, "main.py", strings.NewReader("print(6 * 7)"), client.WriteOptions{})
	if err != nil {
		log.Fatal(err)
	}
	res, err := c.Exec(ctx, box.ID, v1.Exec{Command: new("python main.py")})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(*res.ExitCode, " ", res.Stdout)
}

func ExampleClient_ExecStream() {
	ctx := context.Background()
	c := client.New("http://127.0.0.1:8080", os.Getenv("SANDPIT_TOKEN"), client.Options{})
	outcome, err := c.ExecStream(ctx, "agent-7", v1.Exec{Command: new("make test"), TimeoutSeconds: new(600.0)},
		func(f client.Frame) error {
			to := os.Stdout
			if f.Stderr {
				to = os.Stderr
			}
			_, err := to.Write(f.Data)
			return err
		})
	if err != nil {
		log.Fatal(err)
	}
	if outcome.TimedOut {
		fmt.Println("it took too long")
	}
}

func ExampleClient_List() {
	c := client.New("http://127.0.0.1:8080", os.Getenv("SANDPIT_TOKEN"), client.Options{})
	for box, err := range c.List(context.Background(), client.ListQuery{Status: []string{"running"}}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(box.Ref(), box.Image)
	}
}

func ExampleClient_Get() {
	c := client.New("http://127.0.0.1:8080", os.Getenv("SANDPIT_TOKEN"), client.Options{})
	_, err := c.Get(context.Background(), "agent-8")
	switch e, ok := errors.AsType[*fault.Error](err); {
	case fault.Is(err, fault.NotFound):
		fmt.Println("make one first")
	case ok:
		fmt.Println(e.Message, e.Remedy)
	}
}

func ExampleClient_Terminal() {
	c := client.New("http://127.0.0.1:8080", os.Getenv("SANDPIT_TOKEN"), client.Options{})
	t, err := c.Terminal(context.Background(), "agent-7", client.TerminalOptions{Cols: 120, Rows: 40})
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	if _, err := io.WriteString(t, "uname -a; exit\n"); err != nil {
		log.Fatal(err)
	}
	if _, err := io.Copy(os.Stdout, t); err != nil {
		log.Fatal(err)
	}
	exit, err := t.Wait()
	fmt.Println(exit.ExitCode, err)
}

func ExampleClient_Rollback() {
	ctx := context.Background()
	c := client.New("http://127.0.0.1:8080", os.Getenv("SANDPIT_TOKEN"), client.Options{})
	if _, err := c.Snapshot(ctx, "agent-7", v1.CreateSnapshot{Name: new("before"), Replace: true}); err != nil {
		log.Fatal(err)
	}
	res, err := c.Exec(ctx, "agent-7", v1.Exec{Command: new("./upgrade.sh")})
	if err != nil {
		log.Fatal(err)
	}
	if *res.ExitCode != 0 {
		if _, err := c.Rollback(ctx, "agent-7", "before"); err != nil {
			log.Fatal(err)
		}
	}
}

func ExampleClient_Fork() {
	ctx := context.Background()
	c := client.New("http://127.0.0.1:8080", os.Getenv("SANDPIT_TOKEN"), client.Options{})
	forks, err := c.Fork(ctx, "agent-7", v1.ForkSandbox{Count: new(3)})
	if err != nil {
		log.Fatal(err)
	}
	for i, box := range forks {
		res, err := c.Exec(ctx, box.ID, v1.Exec{Argv: []string{"./try.sh", fmt.Sprint(i)}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(*res.ExitCode)
	}
}

func ExampleClient_ExportSnapshot() {
	ctx := context.Background()
	here := client.New("http://127.0.0.1:8080", os.Getenv("SANDPIT_TOKEN"), client.Options{})
	there := client.New("https://sandpit.example.com", os.Getenv("OTHER_TOKEN"), client.Options{})
	archive, err := here.ExportSnapshot(ctx, "agent-7/before")
	if err != nil {
		log.Fatal(err)
	}
	defer archive.Close()
	snapshot, err := there.ImportSnapshot(ctx, archive, client.ImportOptions{Name: "agent-7"})
	if err != nil {
		log.Fatal(err)
	}
	box, _, err := there.Create(ctx, v1.CreateSandbox{FromSnapshot: &snapshot.ID})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(box.ID)
}

func ExampleClient_Pause() {
	ctx := context.Background()
	c := client.New("http://127.0.0.1:8080", os.Getenv("SANDPIT_TOKEN"), client.Options{})
	box, err := c.Pause(ctx, "agent-7")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("it ran for %.1f s\n", box.RunSeconds)
	if _, err := c.Resume(ctx, "agent-7"); err != nil {
		log.Fatal(err)
	}
}

func ExampleClient_CreateVolume() {
	ctx := context.Background()
	c := client.New("http://127.0.0.1:8080", os.Getenv("SANDPIT_TOKEN"), client.Options{})
	if _, err := c.CreateVolume(ctx, v1.CreateVolume{Name: "datasets", SizeMB: new(10240)}); err != nil {
		log.Fatal(err)
	}
	box, _, err := c.Create(ctx, v1.CreateSandbox{Volumes: []v1.MountVolume{{Volume: "datasets", Path: "/mnt/data", ReadOnly: true}}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(box.ID)
}
