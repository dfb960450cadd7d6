package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// script writes an executable shell script and returns its path.
func script(t *testing.T, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestALineOfResults(t *testing.T) {
	v, err := parseLine("ns=12.5 cpu_ns=1e3")
	if err != nil || v["ns"] != 12.5 || v["cpu_ns"] != 1000 {
		t.Errorf("got %v, %v", v, err)
	}
	for _, wrong := range []string{"", "cpu_ns=3", "ns=fast", "ns", "ns=1 warning: x"} {
		if v, err := parseLine(wrong); err == nil {
			t.Errorf("%q gave %v", wrong, v)
		}
	}
}

func TestAProgramThatFailsTellsWhy(t *testing.T) {
	program := script(t, t.TempDir(), "p", "echo ns=1; echo 'bench: sum: got 3, want 4' >&2; exit 1")
	_, err := output(context.Background(), time.Minute, program)
	if err == nil || !strings.Contains(err.Error(), "got 3, want 4") {
		t.Errorf("got %v", err)
	}
}

func TestAProgramThatHangsIsKilled(t *testing.T) {
	program := script(t, t.TempDir(), "p", "exec sleep 100")
	begin := time.Now()
	_, err := output(context.Background(), 100*time.Millisecond, program)
	if err == nil || !strings.Contains(err.Error(), "timed out") || time.Since(begin) > 20*time.Second {
		t.Errorf("got %v after %v", err, time.Since(begin))
	}
}

func TestAServerLivesAsLongAsItsClient(t *testing.T) {
	folder := t.TempDir()
	ended := filepath.Join(folder, "ended")
	j := job{work: workNamed(t, "echo64"), peer: peers[0], workers: 2}
	j.program = script(t, folder, "server", `[ "$*" = "run echo 2 0.5" ] || exit 3; echo port 4711; cat; echo ns=0; touch `+ended)
	script(t, folder, "echo_client", `[ -e `+ended+` ] && exit 4; echo ns=$1 connections=$2 seconds=$3`)
	v, err := runServer(context.Background(), j, 0.5)
	if err != nil || v["ns"] != 4711 || v["connections"] != 64 || v["seconds"] != 0.75 {
		t.Errorf("got %v, %v", v, err)
	}
	if _, err := os.Stat(ended); err != nil {
		t.Errorf("the server was not waited for: %v", err)
	}
}

func TestAServerThatDoesNotStartOrEndWellIsAFailure(t *testing.T) {
	folder := t.TempDir()
	script(t, folder, "echo_client", "echo ns=1")
	for text, want := range map[string]string{
		"echo cannot listen >&2; exit 1": "did not start",
		"echo hello; cat":                "told no port",
		"echo port 1; cat; exit 9":       "did not end well",
	} {
		j := job{work: workNamed(t, "echo1"), peer: peers[0], workers: 1, program: script(t, folder, "server", text)}
		if _, err := runServer(context.Background(), j, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// TestRoundsAreInterleaved runs three pretended peers and looks at the order in which they were called.
func TestRoundsAreInterleaved(t *testing.T) {
	folder := t.TempDir()
	log := filepath.Join(folder, "log")
	for _, p := range peers {
		text := "exit 0" // lists nothing
		if p.name == "weft" || p.name == "asio" || p.name == "go" {
			text = `[ $1 = list ] && { echo chain 1; echo yield2 1; exit; }; echo ` + p.name + ` $2 >>` + log + `; echo ns=5`
		}
		script(t, folder, p.program, text)
	}
	b := &bench{offers: map[string]int{}, samples: map[string][]sample{}, scale: 1, rounds: 2, progress: io.Discard}
	b.discover(context.Background(), folder, regexp.MustCompile("^(chain|yield2)/(weft|asio)"))
	b.run(context.Background())
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"weft chain", "asio chain", "weft yield2", "asio yield2", "asio chain", "weft chain", "asio yield2", "weft yield2"}
	if got := strings.Split(strings.TrimSpace(string(text)), "\n"); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if len(b.failures) != 0 || len(b.records()) != 4 {
		t.Errorf("%d records, failures %v", len(b.records()), b.failures)
	}
}

func TestAFailureIsReportedOnceAndTheRestGoesOn(t *testing.T) {
	folder := t.TempDir()
	for _, p := range peers {
		text := "exit 0"
		switch p.name {
		case "weft":
			text = `[ $1 = list ] && { echo chain 1; exit; }; echo ns=5`
		case "asio":
			text = `[ $1 = list ] && { echo chain 1; echo nonsense 1; exit; }; echo broken >&2; exit 1`
		}
		script(t, folder, p.program, text)
	}
	b := &bench{offers: map[string]int{}, samples: map[string][]sample{}, scale: 1, rounds: 3, progress: io.Discard}
	b.discover(context.Background(), folder, regexp.MustCompile(""))
	b.run(context.Background())
	if len(b.failures) != 2 || !strings.Contains(b.failures[0], "nonsense") || !strings.Contains(b.failures[1], "broken") {
		t.Errorf("failures %v", b.failures)
	}
	if all := b.records(); len(all) != 1 || all[0].Runs != 3 {
		t.Errorf("records %+v", all)
	}
	if text := b.report(folder); !strings.Contains(text, "## Failed") || !strings.Contains(text, "broken") {
		t.Errorf("the report hides it:\n%s", text)
	}
}
