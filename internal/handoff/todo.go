package handoff

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"tapin/internal/fault"
	"tapin/internal/store"
)

const todoFolder = "todos"

// Todo is what a hand-off leaves behind for which nobody had time.
type Todo struct {
	ID        string    `json:"todo_id"`
	HandoffID string    `json:"handoff_id"`
	Reason    Reason    `json:"reason"`
	Task      string    `json:"task,omitempty"`
	Site      string    `json:"site"`
	URL       string    `json:"url"` // no query, no fragment
	CreatedAt time.Time `json:"created_at"`
}

// todos keeps them, a file each. There are as many as an owner has left undone.
type todos struct{ home *store.Home }

func todoFile(id string) string { return todoFolder + "/" + id + ".json" }

// todoID is made of the hand-off's, so that a repetition makes no second one.
func todoID(handoff string) string { return "todo_" + strings.TrimPrefix(handoff, "hof_") }

func (t todos) leave(r Record) error {
	return t.home.WriteJSON(todoFile(r.TodoID), Todo{
		ID: r.TodoID, HandoffID: r.ID, Reason: r.Reason, Task: r.Task,
		Site: place(r.Before.Origin), URL: r.Before.URL, CreatedAt: r.FinishedAt,
	})
}

// Todos lists what waits for the owner, the newest first.
func (r *Room) Todos() ([]Todo, error) {
	files, err := r.todos.home.List(todoFolder)
	if err != nil {
		return nil, err
	}
	slices.Reverse(files) // ids sort by time
	out := []Todo{}
	for _, name := range files {
		id, ok := strings.CutSuffix(name, ".json")
		if !ok || !store.ValidID("todo", id) {
			continue
		}
		var todo Todo
		switch err := r.todos.home.ReadRecord(todoFile(id), &todo, store.Of(&todo.ID, id)); {
		case errors.Is(err, fs.ErrNotExist): // done meanwhile
		case err != nil:
			r.log.Warn("a to-do cannot be read", "todo", id, "error", err)
		default:
			out = append(out, todo)
		}
	}
	return out, nil
}

// TodoDone takes a to-do off the list.
func (r *Room) TodoDone(id string) error {
	err := fs.ErrNotExist
	if store.ValidID("todo", id) {
		err = r.todos.home.Remove(todoFile(id))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.NotFound, "", "there is no to-do %q", clip(id, 64)).WithHint("GET /todos lists them.")
	}
	return err
}
