"""Portuguese topics."""

from __future__ import annotations

from databuild.sources.demo_text.languages import language

POOLS = """
first: Ana, João, Beatriz, Miguel, Inês, Rui, Mariana, Tiago, Sofia, Duarte, Catarina, Pedro, Helena, Nuno, Joana,
  Vasco
city: Porto, Braga, Coimbra, Évora, Recife, Salvador, Curitiba, Faro, Maputo, Aveiro, Lagos, Belém, Viseu, Fortaleza
thing: cadernos, lápis, copos, pratos, livros, vasos, tapetes, pincéis, quadros, cestos, balões, limões
object: um relógio antigo, uma chave de prata, um guarda-chuva vermelho, uma caixa de música, um mapa rasgado,
  uma bússola, um barco de papel, uma carta sem nome
animal: um gato cinzento, uma cegonha, um cão velho, uma tartaruga, um burro, uma coruja, uma raposa, uma andorinha
place: na estação, no mercado, no porto, na biblioteca, no moinho, na praça, no farol, no teatro
dish: caldo verde, arroz de legumes, sopa de lentilhas, bolo de cenoura, salada de grão, açorda, tarte de maçã
day: segunda-feira, terça-feira, quarta-feira, quinta-feira, sexta-feira
fact: a fotossíntese=o processo pelo qual as plantas produzem açúcar a partir de luz, água e dióxido de carbono |
  o arco-íris=luz do sol que as gotas de chuva separam em cores | a inflação=a subida geral dos preços ao longo do
  tempo |
  um algoritmo=uma lista exata de passos que resolve um tipo de problema | a maré=o movimento regular do mar, causado
  sobretudo pela atração da lua | uma metáfora=uma figura que dá a uma coisa o nome de outra | um eclipse da lua=a
  passagem
  da lua pela sombra da terra | um número primo=um número maior do que um que só é divisível por um e por si próprio
pair: Where is the station?=Onde fica a estação? | I arrive on May {i_2_28}.=Chego no dia {i_2_28} de maio. |
  {first} lives in {city}.={first} mora em {city}. | The train leaves at {i_5_11}.=O comboio parte às {i_5_11}. |
  We need {i_5_40} chairs.=Precisamos de {i_5_40} cadeiras. | It is raining today.=Hoje está a chover. |
  My room is number {i_100_900}.=O meu quarto é o número {i_100_900}. | Thank you for the letter.=Obrigado pela carta.
good: O atendimento em {city} foi excelente. | Tudo chegou em {i_2_9} dias e em perfeito estado. | {first}
  ajudou-me com muita
  simpatia. | Voltaria a comprar sem hesitar.
bad: Partiu-se ao fim de {i_2_20} dias. | Esperei {i_30_90} minutos e ninguém apareceu. | A loja de {city} não
  responde. |
  Cheira mal e custou {i_40_300} euros.
labels: positiva, negativa
"""

SCRIPT = """
@ shop shop
? {first} compra {n} {thing} a {p} euros cada e paga com {b} euros. Quanto recebe de troco?
? Numa loja de {city} levei {n} {thing}, cada um a {p} euros, e dei {b} euros. Qual é o troco?
= Primeiro, o total: {n} × {p} = {t} euros. Depois, o troco: {b} - {t} = **{c} euros**.
= O troco é de {c} euros, [pois|porque] {n} × {p} = {t} e {b} - {t} = {c}.
> E quanto custa só um?
< Um só custa {p} euros.
@ travel travel
? Um comboio sai de {city}, anda {h} horas a {v} km/h e faz depois mais {left} km. Que distância percorre?
? {first} viaja {h} horas a uma média de {v} km/h e ainda outros {left} quilómetros. Quantos são ao todo?
= Em {h} horas percorrem-se {v} × {h} = {km} km. Com os {left} km que faltam: {km} + {left} = **{all} km**.
@ area area
? Um jardim em {city} tem {a} m de comprimento e {b} m de largura. Quais são a área e o perímetro?
? {first} quer vedar um terreno retangular de {a} m por {b} m. Calcula o perímetro e a área.
= Área: {a} × {b} = {area} m². Perímetro: 2 × ({a} + {b}) = 2 × {sum} = {per} m.
@ fact fact
? O que é {term}? Uma frase para uma criança de {i_6_12} anos de {city}.
? {first}, de {city}, perguntou-me o que significa «{term}». O que respondo?
? Define em poucas palavras «{term}» e diz a {first} como o memorizar em {i_2_9} dias.
= [Em resumo|Uma resposta curta]: {term} é {what}. [Para memorizar|Para não esquecer], ajuda desenhar a ideia e
  explicá-la a
  alguém, por exemplo a {first2}.
= É {what}. [Depois|A seguir] pode procurar-se um exemplo {place}.
@ story
? Escreve um conto curto com {animal} e {object}.
? Conta-me uma história passada em {city}, com {first}, {first2} e {animal}.
= [Naquela noite|Numa manhã de inverno|Há {i_20_90} anos], em {city}, {first} encontrou {object} {place}. [Ninguém
  sabia de
  quem era|Parecia esperar por alguém]. De repente apareceu {animal} e [sentou-se ao lado|olhou sem medo]. [Caminharam
  juntos|Seguiram o rio] durante {i_2_9} horas. Por fim, {first2} abriu a porta e disse: «[Finalmente|Estava à vossa
  espera]!» [Desde então|A partir daí], come-se ali {dish} a cada {day}.
@ letter
? Escreve um e-mail a {first}: não posso ir na {day} e proponho outra data.
? Preciso de uma mensagem simpática para {first}, de {city}, para mudar o nosso encontro de {day}.
= Olá, {first},¶¶[infelizmente|tenho muita pena, mas] não posso ir na {day}. [Que tal|Pode ser] na {day2} às
  {i_5_11}, {place}?
  [Se preferires outro dia, diz-me|Outro dia também serve].¶¶[Um abraço|Até breve],¶{first2}
@ recipe
? Como se faz {dish} para {i_2_9} pessoas?
? {first} quer fazer {dish} na {day}. Quais são os passos?
= 1. Juntar os ingredientes de {dish} para {i_2_9} pessoas.¶2. [Lavar e cortar|Descascar e cortar] tudo em pedaços.¶3.
  Cozinhar em lume [brando|médio] durante {i_15_50} minutos.¶4. Provar e juntar [um pouco de limão|ervas frescas].
  ¶¶[Deixar repousar {i_5_15} minutos|Servir logo]. Bom apetite!
@ review review
? Esta opinião é positiva ou negativa? «{review}» Responde com uma palavra.
! [{label}|É {label}.]
? Classifica a opinião (positiva ou negativa) e justifica: {review}
! É {label}; a frase «{text}» mostra-o bem.
@ translate pairs
? Traduz para português: {en}
? I need the Portuguese for this: {en}
= {own}
= [Em português|In Portuguese]: «{own}»
"""

TOPICS = language("pt", POOLS, SCRIPT)
