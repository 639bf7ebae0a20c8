package page

import (
	"regexp"
	"sync"
)

// What stands beside sums, in nine languages.

// words is a pattern of whole words; those of scripts without spaces stand anywhere.
// They are many, and only who looks at money needs them.
func words(spaced, joined string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:^|[^\p{L}])(?:` + spaced + `)(?:$|[^\p{L}])|(?:` + joined + `)`)
	})
}

var (
	totalRanks = []func() *regexp.Regexp{
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
		words(`amount|sum|payment|fare|parking fee|fahrpreis|parkgebühr|prix de la course|prezzo della corsa|ritprijs|betrag|montant|somme|importe|monto|cantidad|valor|montante|quantia|importo|bedrag|som`, `金額|金额|運賃|车费|車資`),
	}
	// Sums of these are parts, or something else, when the word comes first.
	totalParts = words(`sub-?total|sub total|items?(?: total| subtotal)?|merchandise|products?|tax(?:es)?|vat|gst|hst|pst|shipping|delivery|postage|handling|fees?|service fee|tip|gratuity|deposit|minimum|previous|last|paid|past|refund|credit|limit|available|current balance|account balance|balance|wallet|list price|unit price|price|original|regular|was|interest|cash ?back|monthly|per month|income|salary|budget|spent|earned|free|orders? over|save|insurance`+
		`|zwischensumme|nettobetrag|netto|steuer|mwst|ust|umsatzsteuer|versand(?:kosten)?|lieferung|gebühr(?:en)?|rabatt|gutschrift|kontostand|verfügbar|saldo|einzelpreis|mindestbetrag|trinkgeld|anzahlung`+
		`|sous-total|tva|taxes?|livraison|frais(?: de port)?|remise|solde|avoir|pourboire|ht|hors taxes|subtotal|iva|impuestos?|envío|gastos|descuento|saldo|propina|frete|imposto|desconto|gorjeta|taxas?|subtotale|spedizione|consegna|sconto|imponibile|mancia|subtotaal|btw|verzend(?:kosten|ing)?|bezorg(?:ing|kosten)|korting|fooi|tegoed|exclusief|excl`,
		`小計|小计|税額|消費税|送料|配送料|手数料|ポイント|割引|残高|余额|运费|配送费|优惠|折扣|税费|商品金额|商品总额|已优惠|手续费|運費`)
	// And of these whatever else is said.
	totalNever = words(`sav(?:ings?|ed|e)|discounts?|points?|rewards?|before tax|without tax|excl\.? tax|per (?:month|week|day|night|person|item|year)|a month|/mo|you (?:earn|save)|credit limit|available (?:balance|credit)|erspar(?:nis|t)|punkte|pro (?:monat|nacht|person|tag)|zzgl|économi(?:e|es|sé)|par (?:mois|nuit|personne)|ahorr(?:o|as)|al mes|por (?:mes|noche|persona|mês|noite|pessoa)|econom(?:ia|izou)|risparm(?:io|i)|al mese|a notte|a persona|bespaar|bespaard|per maand|per nacht|per persoon|(?:choose|select|pick|enter|other|another|custom|different) (?:an? |your |the )?amount|(?:wähle|wählen sie|anderer|anderen|eigener) (?:den |einen |ihren )?betrag|(?:choisissez|autre) (?:un |le |votre )?montant|(?:elige|selecciona|otra|otro) (?:una |la |el |un |tu )?(?:cantidad|importe|monto)|(?:escolha|selecione|outro) (?:um |o )?valor|(?:scegli|altro) (?:un |l[’'])?importo|(?:kies|ander) (?:een |je |het )?bedrag|total (?:paid|spent|raised|sales|income|revenue|expenses|spend|earned|value|assets|donated|payments made)|total (?:interest|tax(?:es)?|fees?|shipping|discounts?|balance)|gesamt(?:zinsen|guthaben)|(?:total|totale) (?:des intérêts|de intereses|de juros|degli interessi)|(?:solde|saldo) total[e]?|total (?:re)?payments|total (?:of|over|for) (?:the )?\d+ (?:(?:re)?payments|instal?lments|months|years)|(?:total|totale|totaal|gesamt|summe|total de|total des|somme des|totale delle) ?(?:deductions|withheld|abzüge|retenues|deducciones|retenciones|descontos|trattenute|inhoudingen)|(?:to|will|you[’']ll|you) (?:receive|get)(?: back)?|(?:zu )?erhalten|auszahlung(?:sbetrag)?|à recevoir|a recibir|a receber|da ricevere|te ontvangen|at (?:the )?(?:property|hotel|venue)|on (?:arrival|delivery)|vor ort|bei ankunft|sur place|à l[’']arrivée|en el (?:hotel|alojamiento)|al llegar|in struttura|all[’']arrivo|ter plaatse|bij aankomst|total de pagos|total des (?:paiements|mensualités)|total dos pagamentos|totale dei pagamenti|(?:total|totale|totaal|gesamt) (?:paid|pago|pagado|payé|bezahlt|pagato|betaald)|(?:costo|custo|coût|costo) total del? cr[ée]dito|a financiar|financé|ausgaben|einnahmen|incl\.? (?:\p{L}+ ){1,2}fee$|of goal|raised|budgeted|refund(?:s|ed|able)?|reimburse(?:d|ment)?|(?:rück)?erstattung(?:sbetrag)?|rückzahlung|rembours(?:é|ement)|reembolsos?|devolución|estorno|rimbors[oi]|terugbetaling`,
		`現地|到店|受取(?:金)?額|控除|到账|金額を選|选择金额|選擇金額|節約|お得|獲得|返金|払い?戻|退款|退货|残高合計|合計残高|总余额|总资产|已省|节省|立减|积分|每月|每晚`)
)

// givenBack is said behind what somebody gets.
var givenBack = words(`(?:be |will be )?(?:refunded|reimbursed|credited) to|back to (?:you|your)|(?:wird|werden) (?:ihnen )?(?:erstattet|gutgeschrieben)|(?:vous )?(?:sera|seront) remboursés?|se (?:te |le )?(?:reembolsará|devolverá)|será (?:reembolsado|estornado)|(?:sarà|verrà) rimborsat[oa]|wordt (?:terugbetaald|teruggestort)`, `を?返金|退还|退回`)

// bygone is said of what was paid already.
var bygone = words(`(?:was|were|has been|have been|already) (?:paid|charged|completed|settled)|paid on|(?:wurde|bereits) (?:bezahlt|abgebucht|belastet|beglichen)|bezahlt am|(?:a été|déjà) (?:payé|réglé|débité|prélevé)e?|(?:ya|fue|ha sido) (?:pagad|cobrad)[oa]|(?:já|foi) (?:pag|cobrad)[oa]|(?:già|è stat[oa]) (?:pagat|addebitat)[oa]|(?:reeds|al|is) (?:betaald|afgeschreven)`, `支払い?済|決済済|已完成|已支付|已付款|已缴|已收款`)

// lessens is said of what is taken off, where no minus says it.
var lessens = words(`discount|voucher|coupon|gift card|credit|promo(?:tion)?|rabatt|gutschein|gutschrift|nachlass|remise|réduction|avoir|descuento|desconto|cupón|cupom|sconto|buono|korting|tegoed`, `割引|クーポン|优惠|折扣|优惠券|抵扣|折抵`)
