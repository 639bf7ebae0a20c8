package page

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/language"

	"tapin/internal/money"
	"tapin/internal/site"
)

// What a reading of a page's sums comes to.
const (
	TotalRead      = "total"
	TotalAmbiguous = "ambiguous"
	TotalNone      = "none"
)

// Totals is what a page says is to be paid, read where nobody can type.
type Totals struct {
	Origin   string       // of the page; frames do not change it
	Decision string       // total, ambiguous or none
	Total    money.Amount // zero unless decided
	Label    string       // what stands beside it
	Certain  bool         // no other currency is as likely
	Larger   bool         // a larger total, or one in another currency, is visible too
	Echoed   bool         // it stands in the address as well: whoever led here may have put it there
	Foreign  bool         // only a frame of another site shows it
	Seen     []Candidate  // everything that is called a total
	Named    []bool       // of the names that were asked for, which the page shows

	box   *rect // on the page, in CSS pixels
	frame frame
}

// Candidate is one sum that is called a total.
type Candidate struct {
	Amount money.Amount
	Label  string
	rank   int
}

// sums is one document's answer.
type sums struct {
	Origin   string    `json:"origin"`
	Host     string    `json:"host"`
	Language string    `json:"language"`
	Sums     []sumLine `json:"sums"`
	Named    []bool    `json:"names"`

	frame frame
}

type sumLine struct {
	Text   string `json:"text"`
	Label  string `json:"label"`
	Echo   string `json:"echo"`
	Button bool   `json:"button"` // it stands on the button that takes it
	Beside bool   `json:"beside"` // or alone with it
	Box    rect   `json:"box"`
}

// claim is a sum in a document on its way to becoming the total.
type claim struct {
	Candidate
	certain, echoed, foreign, unread, vague bool
	box                                     rect
	frame                                   frame
}

// words is a pattern of whole words; those of scripts without spaces stand anywhere.
func words(spaced, joined string) *regexp.Regexp {
	return regexp.MustCompile(`(?:^|[^\p{L}])(?:` + spaced + `)(?:$|[^\p{L}])|(?:` + joined + `)`)
}

var (
	totalRanks = []*regexp.Regexp{
		words(`(?:total |amount )?(?:due|payable|charged|paid|pay|payment) (?:today|now)|today[’']s (?:total|payment|charge)|you pay (?:today|now)|(?:heute|jetzt|sofort) (?:fällig|zu zahlen)|à (?:payer|régler) (?:aujourd[’']hui|maintenant)|a pagar (?:hoy|ahora|hoje|agora)|da pagare (?:oggi|ora)|(?:nu|vandaag) te betalen`+
			`|(?:charged|billed) (?:today|now)|(?:heute|jetzt|sofort) (?:abgebucht|belastet|berechnet)|(?:prélevé|débité|facturé)e?s? (?:aujourd[’']hui|maintenant|immédiatement)|(?:cobrado|cargado|debitado) (?:hoy|ahora|hoje|agora)|addebitat[oa] (?:oggi|ora|subito)|(?:vandaag|nu) afgeschreven`, `今回のお支払い|本次应付|本次支付`),
		words(`amount (?:due|payable|to pay|to be paid|charged)|payment amount|total (?:due|amount|to pay|payable|price|cost|charge|payment)|(?:order|grand|final|overall|purchase|booking|invoice|cart|basket|bill|estimated|new|your) total|you[’']?(?:ll| will)? pay|to pay|balance due|due|(?:will be|are being|be) charged|you(?: are|[’']re) (?:giving|paying|sending|donating|transferring)|price to pay|donation amount|you owe|amount (?:owed|owing|outstanding)|outstanding (?:amount|balance)|(?:your|patient) (?:responsibility|share|portion|balance due)`+
			`|gesamtsumme|gesamtbetrag|gesamtpreis|endbetrag|endsumme|endpreis|zahlbetrag|rechnungsbetrag|zu (?:be)?zahlen(?:der betrag)?|zahlungsbetrag|fälliger betrag|bestellsumme|gesamtkosten|summe gesamt|wird (?:abgebucht|belastet)|(?:brutto|kauf|auftrags|bestell|schluss|spenden|beitrags|forderungs)(?:betrag|summe|preis|wert)|rechnungssumme|offene[rn]? (?:betrag|forderung)|nachzahlung`+
			`|montant (?:total|à payer|dû|de la commande|à régler)|total (?:à payer|ttc|de la commande|général)|net à payer|(?:reste )?à payer|à régler|prix total|sera (?:prélevé|débité)e?|reste à charge|à (?:votre|ma) charge`+
			`|total a pagar|importe (?:total|a pagar)|total del pedido|monto (?:total|a pagar)|(?:cantidad|precio) total|a pagar|total de la compra|se (?:te |le )?(?:cobrará|cargará)n?|a (?:tu|su) cargo|(?:importe|saldo) pendiente`+
			`|valor (?:total|a pagar)|total (?:do pedido|da compra|geral)|total a pagar|será (?:cobrado|debitado)|a (?:seu|teu) cargo|valor em aberto|total da fatura`+
			`|totale (?:ordine|da pagare|complessivo|dell[’']ordine|carrello|addebito|addebitato)|importo (?:totale|da pagare|dovuto)|da pagare|prezzo totale|(?:verrà|sarà) addebitat[oa]|a (?:tuo|suo) carico|importo complessivo|totale dovuto|netto a pagare`+
			`|totaalbedrag|totaal te betalen|te betalen(?: bedrag)?|te voldoen|totaalprijs|eindbedrag|totaal bestelling|wordt afgeschreven|(?:openstaand|verschuldigd) bedrag|factuurbedrag|eigen bijdrage`,
			`納付(?:金)?額|納税額|自己負担額|应缴|待支付|待付款|ご?請求(?:金)?額|お?支払い?(?:金額|総額|合計|額)|ご注文(?:合計|金額)|注文合計|合計金額|総合計|税込合計|应付|實付|实付|应支付|需支付|应付款|订单总[额价]|總計|总计|總金額|总金额|付款金额|支付金额|應付`),
		words(`totals?|gesamt|summe|insgesamt|totale|totaal`, `合計|総額|合计|總額|总额|总价|共计`),
		// Without the fee, where a total stands beside it.
		words(`your (?:max(?:imum)? )?bid|your (?:donation|gift|contribution|pledge)|(?:ihre|deine) spende|(?:ihr|dein) (?:höchst)?gebot|votre (?:don|enchère|offre)|(?:tu|su) (?:donativo|donación|aportación|puja)|(?:sua|tua) doação|(?:seu|teu) lance|la tua (?:donazione|offerta)|(?:je|jouw|uw) (?:donatie|gift|bod)|amount to (?:send|transfer)|transfer amount|überweisungsbetrag|montant du virement|importe de la transferencia|valor da transferência|importo del bonifico|over te (?:maken|boeken) bedrag`, `振込金額|送金額|转账金额|轉帳金額`),
		words(`amount|sum|payment|fare|parking fee|fahrpreis|parkgebühr|prix de la course|prezzo della corsa|ritprijs|betrag|montant|somme|importe|monto|cantidad|valor|quantia|importo|bedrag|som`, `金額|金额|運賃|车费|車資`),
	}
	// Sums of these are parts, or something else, when the word comes first.
	totalParts = words(`sub-?total|sub total|items?(?: total| subtotal)?|merchandise|products?|tax(?:es)?|vat|gst|hst|pst|shipping|delivery|postage|handling|fees?|service fee|tip|gratuity|deposit|minimum|previous|last|paid|past|refund|credit|limit|available|current balance|account balance|balance|wallet|list price|unit price|price|original|regular|was|interest|cash ?back|monthly|per month|income|salary|budget|spent|earned|free|orders? over|save|insurance`+
		`|zwischensumme|nettobetrag|netto|steuer|mwst|ust|umsatzsteuer|versand(?:kosten)?|lieferung|gebühr(?:en)?|rabatt|gutschrift|kontostand|verfügbar|saldo|einzelpreis|mindestbetrag|trinkgeld|anzahlung`+
		`|sous-total|tva|taxes?|livraison|frais(?: de port)?|remise|solde|avoir|pourboire|ht|hors taxes|subtotal|iva|impuestos?|envío|gastos|descuento|saldo|propina|frete|imposto|desconto|gorjeta|taxas?|subtotale|spedizione|consegna|sconto|imponibile|mancia|subtotaal|btw|verzend(?:kosten|ing)?|bezorg(?:ing|kosten)|korting|fooi|tegoed|exclusief|excl`,
		`小計|小计|税額|消費税|送料|配送料|手数料|ポイント|割引|残高|余额|运费|配送费|优惠|折扣|税费|商品金额|商品总额|已优惠|手续费|運費`)
	// And of these whatever else is said.
	totalNever = words(`sav(?:ings?|ed|e)|discounts?|points?|rewards?|before tax|without tax|excl\.? tax|per (?:month|week|day|night|person|item|year)|a month|/mo|you (?:earn|save)|credit limit|available (?:balance|credit)|erspar(?:nis|t)|punkte|pro (?:monat|nacht|person|tag)|zzgl|économi(?:e|es|sé)|par (?:mois|nuit|personne)|ahorr(?:o|as)|al mes|por (?:mes|noche|persona|mês|noite|pessoa)|econom(?:ia|izou)|risparm(?:io|i)|al mese|a notte|a persona|bespaar|bespaard|per maand|per nacht|per persoon|(?:choose|select|pick|enter|other|another|custom|different) (?:an? |your |the )?amount|(?:wähle|wählen sie|anderer|anderen|eigener) (?:den |einen |ihren )?betrag|(?:choisissez|autre) (?:un |le |votre )?montant|(?:elige|selecciona|otra|otro) (?:una |la |el |un |tu )?(?:cantidad|importe|monto)|(?:escolha|selecione|outro) (?:um |o )?valor|(?:scegli|altro) (?:un |l[’'])?importo|(?:kies|ander) (?:een |je |het )?bedrag|total (?:paid|spent|raised|sales|income|revenue|expenses|spend|earned|value|assets|donated|payments made)|total (?:interest|tax(?:es)?|fees?|shipping|discounts?|balance)|gesamt(?:zinsen|guthaben)|(?:total|totale) (?:des intérêts|de intereses|de juros|degli interessi)|(?:solde|saldo) total[e]?|total (?:re)?payments|total (?:of|over|for) (?:the )?\d+ (?:(?:re)?payments|instal?lments|months|years)|(?:total|totale|totaal|gesamt|summe|total de|total des|somme des|totale delle) ?(?:deductions|withheld|abzüge|retenues|deducciones|retenciones|descontos|trattenute|inhoudingen)|(?:to|will|you[’']ll|you) (?:receive|get)(?: back)?|(?:zu )?erhalten|auszahlung(?:sbetrag)?|à recevoir|a recibir|a receber|da ricevere|te ontvangen|of goal|raised|budgeted|refund(?:s|ed|able)?|reimburse(?:d|ment)?|(?:rück)?erstattung(?:sbetrag)?|rückzahlung|rembours(?:é|ement)|reembolsos?|devolución|estorno|rimbors[oi]|terugbetaling`,
		`受取(?:金)?額|控除|到账|金額を選|选择金额|選擇金額|節約|お得|獲得|返金|払い?戻|退款|退货|残高合計|合計残高|总余额|总资产|已省|节省|立减|积分|每月|每晚`)
)

// rankOf is how surely a label speaks of the total; -1 means that it does not.
func rankOf(label string) int {
	label = strings.ToLower(strings.Join(strings.Fields(label), " "))
	if totalNever.MatchString(label) {
		return -1
	}
	part := totalParts.FindStringIndex(label)
	for rank, r := range totalRanks {
		if at := r.FindStringIndex(label); at != nil && (part == nil || at[0] <= part[0]) {
			return rank
		}
	}
	return -1
}

// claims are the sums of a document that are called totals.
func (d sums) claims(foreign bool) []claim {
	var out []claim
	region := regionOf(d.Language, d.Host)
	for _, line := range d.Sums {
		if line.Echo == "field" {
			continue
		}
		found := money.Find(line.Text)
		for i, s := range found {
			label := line.labelOf(found, i)
			rank := rankOf(label)
			if rank < 0 && line.Label != "" && !totalParts.MatchString(strings.ToLower(label)) {
				label = line.Label + " " + label // 0.0125 BTC ≈ $1,104.20
				rank = rankOf(label)
			}
			if line.Button {
				rank = 0
			}
			if rank < 0 && line.Beside && len(found) == 1 && !totalNever.MatchString(strings.ToLower(label)) {
				rank = len(totalRanks) // whatever is called a total comes before it
			}
			if rank < 0 || s.Negative || bygone.MatchString(strings.ToLower(label+" "+line.behind(found, i))) || givenBack.MatchString(strings.ToLower(line.behind(found, i))) {
				continue
			}
			a, certain := s.In(region)
			out = append(out, claim{Candidate{a, shortTo(strings.TrimSpace(label), 80), rank}, certain, line.Echo == "address", foreign, len(s.Amounts) == 0, s.Vague, line.Box, d.frame})
		}
	}
	return out
}

const (
	prose  = 120 // a line with more is running text
	nearby = 32  // and there only what is this near to a sum says what it is
)

// labelOf is what is said of a sum of the line: before it, else beside the line,
// else behind it.
func (l sumLine) labelOf(found []money.Sighting, i int) string {
	from := 0
	if i > 0 {
		from = found[i-1].End
	}
	label := strings.TrimSpace(l.Text[from:found[i].Start])
	if utf8.RuneCountInString(l.Text) >= prose {
		if r := []rune(label); len(r) > nearby {
			label = string(r[len(r)-nearby:])
		}
	}
	if letters(label) >= 3 {
		if strings.HasPrefix(strings.TrimSpace(l.Text[found[i].End:]), "today") {
			label += " today"
		}
		return label
	}
	if letters(l.Label) >= 2 {
		return l.Label
	}
	return l.behind(found, i) // $25 due today
}

// behind is what follows a sum, up to the next.
func (l sumLine) behind(found []money.Sighting, i int) string {
	to := len(l.Text)
	if i+1 < len(found) {
		to = found[i+1].Start
	}
	r := []rune(l.Text[found[i].End:to])
	return string(r[:min(len(r), nearby)])
}

// givenBack is said behind what somebody gets.
var givenBack = words(`(?:be |will be )?(?:refunded|reimbursed|credited) to|back to (?:you|your)|(?:wird|werden) (?:ihnen )?(?:erstattet|gutgeschrieben)|(?:vous )?(?:sera|seront) remboursés?|se (?:te |le )?(?:reembolsará|devolverá)|será (?:reembolsado|estornado)|(?:sarà|verrà) rimborsat[oa]|wordt (?:terugbetaald|teruggestort)`, `を?返金|退还|退回`)

// bygone is said of what was paid already.
var bygone = words(`(?:was|were|has been|have been|already) (?:paid|charged|completed|settled)|paid on|(?:wurde|bereits) (?:bezahlt|abgebucht|belastet|beglichen)|bezahlt am|(?:a été|déjà) (?:payé|réglé|débité|prélevé)e?|(?:ya|fue|ha sido) (?:pagad|cobrad)[oa]|(?:já|foi) (?:pag|cobrad)[oa]|(?:già|è stat[oa]) (?:pagat|addebitat)[oa]|(?:reeds|al|is) (?:betaald|afgeschreven)`, `支払い?済|決済済|已完成|已支付|已付款|已缴|已收款`)

// letters counts those of a label; one of a script without spaces is a word.
func letters(s string) int {
	n := 0
	for _, r := range s {
		if r > '9' && (r < ':' || r > '@') && r != '€' && r != '£' && r != '¥' && r != money.Joint {
			n++
			if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) {
				n++
			}
		}
	}
	return n
}

// totalOf decides what the documents of a page say is to be paid. The first
// one is the page itself.
func totalOf(docs []sums) Totals {
	t := Totals{Decision: TotalNone}
	if len(docs) == 0 {
		return t
	}
	t.Origin = docs[0].Origin
	var own, others []claim
	for _, d := range docs {
		foreign := !site.Same(d.Origin, t.Origin) && d.Origin != "null" && d.Origin != t.Origin
		if d.Origin == "null" && d.frame.id != docs[0].frame.id {
			foreign = true // who knows whose it is
		}
		if foreign {
			others = append(others, d.claims(true)...)
		} else {
			own = append(own, d.claims(false)...)
		}
		for i, named := range d.Named {
			if i >= len(t.Named) {
				t.Named = append(t.Named, false)
			}
			t.Named[i] = t.Named[i] || named && !foreign
		}
	}
	for _, c := range append(slices.Clone(own), others...) {
		t.Seen = append(t.Seen, c.Candidate)
	}
	// What is called a total and not said exactly is in doubt, unless it is said elsewhere.
	exact := func(c claim) bool { return !c.vague }
	vague := slices.ContainsFunc(own, func(c claim) bool { return c.vague })
	own, others = only(own, exact), only(others, exact)
	from := own
	if len(from) == 0 && !vague {
		from, t.Foreign = others, len(others) > 0
	}
	best, ok := decide(from)
	if !ok {
		if len(from) > 0 || vague {
			t.Decision = TotalAmbiguous
		}
		return t
	}
	t.Decision, t.Total, t.Label, t.Certain = TotalRead, best.Amount, best.Label, best.certain
	t.box, t.frame = &best.box, best.frame
	for _, c := range append(own, others...) {
		if c.Amount == t.Total {
			t.Echoed = t.Echoed || c.echoed
		}
		if c.unread || c.Amount.Currency != t.Total.Currency || c.Amount.Minor > t.Total.Minor {
			t.Larger = true
		}
	}
	return t
}

func only(all []claim, is func(claim) bool) []claim {
	return slices.DeleteFunc(slices.Clone(all), func(c claim) bool { return !is(c) })
}

// decide takes the surest kind of claim; two that differ decide nothing.
func decide(all []claim) (claim, bool) {
	var best *claim
	for i := range all {
		if c := &all[i]; best == nil || c.rank < best.rank {
			best = c
		}
	}
	if best == nil {
		return claim{}, false
	}
	for _, c := range all {
		if c.rank == best.rank && (c.Amount != best.Amount || c.unread) {
			return claim{}, false
		}
	}
	// Nothing now and something later is no decision: it is the later that is paid.
	if best.Amount.Minor == 0 && slices.ContainsFunc(all, func(c claim) bool { return c.Amount.Minor != 0 }) {
		return claim{}, false
	}
	return *best, true
}

// regionOf is where a page seems to be from: what its language says, else its domain.
func regionOf(lang, host string) string {
	if tag, err := language.Parse(lang); err == nil {
		if _, _, region := tag.Raw(); region.String() != "ZZ" {
			return region.String()
		}
		if base, _ := tag.Base(); base.String() == "ja" || base.String() == "zh" {
			region, _ := tag.Region()
			return region.String()
		}
	}
	at := strings.LastIndexByte(host, '.')
	if len(host)-at == 3 {
		code := strings.ToUpper(host[at+1:])
		if code == "UK" {
			code = "GB"
		}
		if region, err := language.ParseRegion(code); err == nil && region.IsCountry() && !slices.Contains([]string{"IO", "CO", "ME", "TV", "AI", "CC", "LY", "GG", "IS", "TO", "FM", "AM", "SH"}, code) {
			return code
		}
	}
	return ""
}
