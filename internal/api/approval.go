package api

import "time"

// ApprovalRequest is the body of POST /approval/request.
type ApprovalRequest struct {
	Site        string `json:"site" required:"true" max:"253" doc:"Where it is paid, as a domain such as verizon.com."`
	Payee       string `json:"payee" required:"true" max:"200" doc:"Who gets the money, as the page names them."`
	Amount      string `json:"amount" required:"true" max:"24" doc:"In major units, such as 142.50."`
	Currency    string `json:"currency" required:"true" max:"3" doc:"ISO 4217, such as USD."`
	Description string `json:"description,omitempty" max:"1000" doc:"What is paid, in the owner's words: Verizon bill."`
	SessionID   string `json:"session_id,omitempty" max:"64" doc:"The active session without it."`

	// IdempotencyKey travels as the Idempotency-Key header.
	IdempotencyKey string `json:"-"`
}

// Money is an amount in major units with its currency.
type Money struct {
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
}

// PageReading is what tapin itself read on the page.
type PageReading struct {
	Origin    string  `json:"origin"`
	Decision  string  `json:"decision" enum:"total,ambiguous,none"`
	Total     *Money  `json:"total,omitempty" doc:"What the page says is to be paid, outside of anything that can be typed into."`
	Label     string  `json:"label,omitempty" doc:"What stands beside it, from the page."`
	Seen      []Money `json:"seen,omitempty" doc:"Everything that is called a total."`
	Certain   bool    `json:"certain" doc:"No other currency is as likely."`
	Larger    bool    `json:"larger,omitempty" doc:"A larger total, or one in another currency, is visible too."`
	Echoed    bool    `json:"echoed,omitempty" doc:"The total stands in the address as well."`
	Foreign   bool    `json:"foreign,omitempty" doc:"Only a frame of another site shows it."`
	PayeeSeen bool    `json:"payee_seen" doc:"The page names the payee."`
	SiteSeen  bool    `json:"site_seen" doc:"The page is of the site that was named."`
}

// Approval is one payment that was asked for.
type Approval struct {
	ApprovalID  string      `json:"approval_id"`
	Version     int         `json:"version"`
	Status      string      `json:"status" enum:"pending,approved,denied,expired,used"`
	SessionID   string      `json:"session_id"`
	Generation  int         `json:"generation"`
	Site        string      `json:"site"`
	Payee       string      `json:"payee"`
	Amount      string      `json:"amount" doc:"As the agent says."`
	Currency    string      `json:"currency"`
	Description string      `json:"description,omitempty"`
	Reading     PageReading `json:"page_reading"`
	Differs     []string    `json:"differs,omitempty" doc:"Where the agent and the page disagree."`
	Granted     *Money      `json:"granted,omitempty" doc:"What one click may pay."`
	Question    string      `json:"question" doc:"What the owner is asked."`
	Notice      string      `json:"notice,omitempty" doc:"What the owner is told afterwards."`
	CreatedAt   time.Time   `json:"created_at"`
	Deadline    time.Time   `json:"deadline" doc:"Until then it can be decided or, once approved, used."`
	DecidedAt   time.Time   `json:"decided_at,omitzero"`
	DecidedBy   string      `json:"decided_by,omitempty" enum:"owner,policy"`
	UsedAt      time.Time   `json:"used_at,omitzero"`
	Outcome     string      `json:"outcome,omitempty" enum:"confirmed,none,unknown" doc:"What became of the click. unknown: it may have been paid; do not try again."`
}

// ApprovalsQuery says which approvals to list.
type ApprovalsQuery struct {
	Status    string `json:"status,omitempty" enum:"pending,approved,denied,expired,used"`
	SessionID string `json:"session_id,omitempty" max:"64"`
	Limit     int    `json:"limit,omitempty" min:"1" max:"200" doc:"50 without it."`
	Cursor    string `json:"cursor,omitempty" max:"64" doc:"next of the page before."`
}

// Approvals is a page of approvals, the newest first.
type Approvals struct {
	Approvals []Approval `json:"approvals"`
	Next      string     `json:"next,omitempty"`
}

// DecideRequest is the body of POST /approval/{id}/decide.
type DecideRequest struct {
	Decision string `json:"decision" required:"true" enum:"approve,deny"`
	Amount   string `json:"amount,omitempty" max:"24" doc:"What the page shows; needed where the agent says something else."`
	Currency string `json:"currency,omitempty" max:"3" doc:"That of the page without it."`
}

// SayRequest is the body of POST /policies/say.
type SayRequest struct {
	Text string `json:"text" required:"true" max:"300" doc:"A sentence of the owner's: auto-approve verizon under $200."`
}

// SayAnswer is what the owner hears.
type SayAnswer struct {
	Understood bool            `json:"understood" doc:"false: the sentence is about something else."`
	Sentence   string          `json:"sentence,omitempty"`
	Proposal   *PolicyProposal `json:"proposal,omitempty" doc:"Not in force before it is confirmed."`
}

// StandingPolicy is what is approved without asking.
type StandingPolicy struct {
	Login       string    `json:"login,omitempty"`
	Site        string    `json:"site"`
	Max         Money     `json:"max" doc:"Of one payment."`
	Monthly     *Money    `json:"monthly,omitempty"`
	Left        *Money    `json:"left,omitempty" doc:"Of this month's budget."`
	Expires     time.Time `json:"expires,omitzero"`
	Zone        string    `json:"zone,omitempty" doc:"Whose calendar the months are of."`
	ConfirmedAt time.Time `json:"confirmed_at,omitzero"`
	Sentence    string    `json:"sentence"`
}

// PolicyProposal is a policy that waits for the owner.
type PolicyProposal struct {
	ProposalID string         `json:"proposal_id"`
	From       string         `json:"from" enum:"words,manifest,door"`
	Policy     StandingPolicy `json:"policy"`
	CreatedAt  time.Time      `json:"created_at"`
}

// ClearedButton is a button that the owner says is no payment.
type ClearedButton struct {
	Site  string    `json:"site"`
	Label string    `json:"label,omitempty" doc:"Every button of the site without it."`
	At    time.Time `json:"at"`
}

// Policies is everything about payments that stands.
type Policies struct {
	Policies  []StandingPolicy `json:"policies"`
	Proposals []PolicyProposal `json:"proposals"`
	Cleared   []ClearedButton  `json:"cleared"`
}

// PolicyAnswer is a policy that is in force now, or none.
type PolicyAnswer struct {
	Policy   *StandingPolicy `json:"policy,omitempty"`
	Sentence string          `json:"sentence"`
}

// ClearRequest is the body of POST /policies/clear.
type ClearRequest struct {
	Site  string `json:"site" required:"true" max:"253"`
	Label string `json:"label,omitempty" max:"160" doc:"What the button says; every button of the site without it."`
	Undo  bool   `json:"undo,omitempty" doc:"Guard the site again."`
}

// PolicyRequest is the body of PUT /contexts/{name}/policy.
type PolicyRequest struct {
	MaxAmount     string    `json:"max_amount,omitempty" max:"24" doc:"Of one payment, in major units; none ends the policy."`
	Currency      string    `json:"currency,omitempty" max:"3"`
	MonthlyBudget string    `json:"monthly_budget,omitempty" max:"24"`
	Expires       time.Time `json:"expires,omitzero"`
}
